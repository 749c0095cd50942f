"""Experiments on the formats of benchmarks of several files, end to end: generated lives, written as files of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.run import main
from memlab.tables import with_text
from tests.data import test_beam, test_realtalk
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


@pytest.mark.parametrize(("files", "experiment"), rest_at_night(
    product([realtalk, beam], ["adaptive_k", "marginal", "learned"]), {(realtalk, "adaptive_k"), (beam, "learned")}))
def test_an_experiment_runs_from_the_files_to_its_contrasts(files: Callable[[Path], list[str]], experiment: str,
                                                            tmp_path: Path) -> None:
    check_contrasts(experiment, files, tmp_path)


def check_contrasts(experiment: str, files: Callable[[Path], list[str]], tmp_path: Path) -> None:
    """Run an experiment on the files of four lives; each contrast has all of them."""
    data = tmp_path / "data"
    data.mkdir()
    assert main([f"+exp={experiment}", *files(data), "search/dense=none", "track=none",
                 f"out={tmp_path}/runs", f"store={tmp_path}/store"]) == 0
    (file,) = (tmp_path / "runs").glob("*/*/comparison.json")
    contrasts = json.loads(file.read_text(encoding="utf-8"))["contrasts"]
    assert contrasts
    assert all(row["groups"] == 4 and row["n"] > 10 for row in contrasts)
