"""Experiments on the formats of benchmarks of several files, end to end: generated lives, written as files of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.data import fairytaleqa as tales
from memlab.data.friendsqa import CATEGORIES
from memlab.run import main
from memlab.tables import with_text
from tests.data import test_beam, test_fairytaleqa, test_friendsqa, test_realtalk
from tests.data.official_records import write
from tests.examples import rest_at_night
from tests.small import lives

pytestmark = pytest.mark.slow


def talks() -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the turns of each life with text and date, and its questions with answer and evidence (session, turn)."""
    tables = lives(lives=4).load()
    turns = with_text(tables["turns"], tables["texts"]).join(tables["sessions"], on=["corpus", "session"])
    cited = tables["evidence"].filter(pl.col("turn").is_not_null()).group_by("question", maintain_order=True).agg(
        pl.struct("session", "turn").alias("cited"))
    questions = with_text(tables["questions"], tables["texts"]).join(
        tables["gold"], on="question").join(cited, on="question").sort("question")
    for corpus in turns["corpus"].unique().sort():
        yield turns.filter(corpus=corpus).sort("session", "turn"), questions.filter(corpus=corpus)


def realtalk(folder: Path) -> list[str]:
    """Write a chat of two people for each life."""
    for number, (turns, questions) in enumerate(talks(), 1):
        chat: dict[str, Any] = {"name": {"speaker_1": "Ann", "speaker_2": "Bo"}, "qa": [
            test_realtalk.question(row["text"], [f"D{e['session'] + 1}:{e['turn'] + 1}" for e in row["cited"]],
                                   1 + row["question"] % 3, row["answer"]) for row in questions.iter_rows(named=True)]}
        for row in turns.iter_rows(named=True):
            session, date = f"session_{row['session'] + 1}", f"{row['said_on']:%d.%m.%Y, %H:%M:%S}"
            chat[f"{session}_date_time"] = date
            speaker = "Ann" if row["role"] == "user" else "Bo"
            chat.setdefault(session, []).append(test_realtalk.message(
                f"D{row['session'] + 1}:{row['turn'] + 1}", speaker, row["text"], date))
        write(folder / f"Chat_{number}_Ann_Bo.json", chat)
    return ["data=realtalk", f"data.path={folder}"]


def beam(folder: Path) -> list[str]:
    """Write a chat with an assistant for each life; each session is a batch."""
    for number, (turns, questions) in enumerate(talks(), 1):
        place = {key: i for i, key in enumerate(turns.select("session", "turn").iter_rows())}
        batches = [test_beam.batch([test_beam.message(place[row["session"], row["turn"]], row["role"], row["text"])
                                    for row in part.iter_rows(named=True)],
                                   anchor=f"{part['said_on'][0]:%B-%d-%Y}", number=session + 1)
                   for (session,), part in turns.partition_by("session", as_dict=True).items()]
        test_beam.add_chat(folder / "chats" / "100K" / str(number), batches, {"information_extraction": [
            {"question": row["text"], "answer": row["answer"],
             "source_chat_ids": [place[e["session"], e["turn"]] for e in row["cited"]]}
            for row in questions.iter_rows(named=True)]})
    return ["data=beam", f"data.path={folder}"]


def friendsqa(folder: Path) -> list[str]:
    """Write an episode for each life; each session is a scene, with the questions whose first evidence it holds."""
    for number, (turns, questions) in enumerate(talks(), 1):
        scenes = []
        for (session,), part in turns.partition_by("session", as_dict=True).items():
            asked = [row for row in questions.iter_rows(named=True) if row["cited"][0]["session"] == session]
            scenes.append(test_friendsqa.scene(**{"utterances:": [
                test_friendsqa.said(row["turn"], row["text"], "Ann Lee" if row["role"] == "user" else "Bo")
                for row in part.iter_rows(named=True)]}, qas=[
                test_friendsqa.question(f"{row['question']}_{CATEGORIES[row['question'] % 6]}", row["text"],
                                        *(e["turn"] for e in row["cited"] if e["session"] == session),
                                        answer=row["answer"]) for row in asked]))
        write(folder / f"friendsqa_{number}.json", test_friendsqa.episodes(*scenes, title=f"s01_e0{number}_c01"))
    return ["data=friendsqa", f"data.path={folder}"]


def fairytaleqa(folder: Path) -> list[str]:
    """Write a story for each life; each session is a section."""
    for number, (turns, questions) in enumerate(talks()):
        sections = turns.group_by("session", maintain_order=True).agg(pl.col("text").str.join("\n\n"))
        test_fairytaleqa.tale(folder, str(number), test_fairytaleqa.table([
            test_fairytaleqa.STORY[0], *map(list, sections.iter_rows())]), test_fairytaleqa.table([
                test_fairytaleqa.QUESTIONS[0], *(
                    [row["question"], ",".join(str(e["session"]) for e in row["cited"]),
                     tales.CATEGORIES[row["question"] % 7], "", row["text"], row["answer"]]
                    for row in questions.iter_rows(named=True))]))
    return ["data=fairytaleqa", f"data.path={folder}"]


@pytest.mark.parametrize(("files", "experiment"), rest_at_night(
    [*product([realtalk, beam, fairytaleqa], ["adaptive_k", "marginal", "learned"]),
     *product([friendsqa], ["adaptive_k", "learned"])],  # undated turns are so short that marginal's budget takes all
    {(realtalk, "adaptive_k"), (beam, "learned")}))
def test_an_experiment_runs_from_the_files_to_its_contrasts(files: Callable[[Path], list[str]], experiment: str,
                                                            tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    assert main([f"+exp={experiment}", *files(data), "search/dense=none", "track=none",
                 f"out={tmp_path}/runs", f"store={tmp_path}/store"]) == 0
    (file,) = (tmp_path / "runs").glob("*/*/comparison.json")
    contrasts = json.loads(file.read_text(encoding="utf-8"))["contrasts"]
    assert contrasts
    assert all(row["groups"] == 4 and row["n"] > 10 for row in contrasts)
