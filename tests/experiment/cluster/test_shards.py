"""Shards of an arm: the same rankings, contexts and figures as without shards, for every system."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab.data.dataset import Dataset
from memlab.evaluate.costs import replies
from memlab.experiment.cluster import shards
from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.results import read_arm
from memlab.learn.coverage import CrossFitCoverage, LearnedK
from memlab.learn.fits import save
from memlab.learn.ranker.model import fit
from memlab.learn.ranker.stage import candidates
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.rank.select import Gap
from memlab.stages.read.prompt import PromptTemplate
from memlab.stages.read.reader import Reader
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.foreign import read_json
from tests.chats import ScriptedChat
from tests.examples import rest_at_night
from tests.learn.ranker.worlds import RECIPE, first, learned
from tests.published import FITTED, PRESETS, SAMPLE, clear, preset
from tests.small import arm, lexical, lives

pytestmark = pytest.mark.slow

DATA = lives(lives=5)
LEARNED = LearnedK(coverage=CrossFitCoverage(folds=2))
FILES = ("ranking", "context", "questions", "shown", "classes")


def both(tmp_path: Path, pipeline: Pipeline, of: int, data: Dataset = DATA) -> tuple[Arm, Arm]:
    """The same arm run whole and in parts, each with a store of its own."""
    whole, parts = (arm(tmp_path / name, pipeline, data) for name in ("whole", "parts"))
    whole.run(Store(tmp_path / "store-whole"))
    store = Store(tmp_path / "store-parts")
    parts.run(store, ranked=shards.run_all(parts, store, of))
    return whole, parts


def same(whole: Path, parts: Path) -> None:
    assert read_json(whole / "metrics.json") == read_json(parts / "metrics.json")
    one, other = (read_json(folder / "manifest.json") for folder in (whole, parts))
    assert one["costs"].keys() == other["costs"].keys()
    assert one["told"] == other["told"]
    asked = [{(slot, model): (of["replies"], of["prompt_tokens"], of["completion_tokens"])
              for slot, model, of in replies(read_json(folder / "manifest.json"))} for folder in (whole, parts)]
    assert asked[0] == asked[1]
    assert (whole / "run.trec").read_text() == (parts / "run.trec").read_text()
    for name in FILES:
        one, two = (pl.read_parquet(folder / f"{name}.parquet") for folder in (whole, parts))
        if name == "context" or "unit" in one.columns and not numbered_alike(whole):
            one, two = one.drop("unit"), two.drop("unit")
        assert one.equals(two), name


def numbered_alike(folder: Path) -> bool:
    """Memories that are written behind all turns have other numbers in parts; turns and sessions have not."""
    return pl.read_parquet(folder / "ranking.parquet")["level"].ne("memory").all()


@pytest.mark.parametrize("name", rest_at_night([name for name in PRESETS if name not in FITTED], SAMPLE))
def test_every_system_gives_in_parts_what_it_gives_whole(name: str, tmp_path: Path) -> None:
    whole, parts = both(tmp_path, preset(name, clear), 2, lives(lives=3, sessions=6, questions=6))
    same(whole.folder(), parts.folder())


@pytest.mark.parametrize(("select", "of"), [(LEARNED, 2), (Gap(), 8)])  # eight parts of five corpora: three are empty
def test_an_adaptive_arm_and_its_twin_are_the_same_in_parts(select: object, of: int, tmp_path: Path) -> None:
    whole, parts = both(tmp_path, lexical(select=select), of)
    same(whole.folder(), parts.folder())
    twin = read_json(whole.folder() / "manifest.json")["twin"]
    assert twin is not None
    same(whole.arms_folder() / twin, parts.arms_folder() / read_json(parts.folder() / "manifest.json")["twin"])


def test_a_saved_fit_shows_in_parts_what_it_shows_whole(tmp_path: Path) -> None:
    model = fit(*candidates(first(), 40), 40, RECIPE)
    save(model, tmp_path / "fit.json")
    whole, parts = both(tmp_path, lexical(score=learned(model=tmp_path / "fit.json")), 8)
    same(whole.folder(), parts.folder())
    one, two = (read_arm(made.folder()) for made in (whole, parts))
    assert one.manifest["importances"] == two.manifest["importances"] != []


def test_a_merge_asks_a_reader_nothing_that_a_part_was_answered(tmp_path: Path) -> None:
    chat = ScriptedChat(rule=lambda prompt: prompt.messages[-1].content[-20:])
    plain = PromptTemplate(instructions="{history} {date} {question}")
    one = arm(tmp_path, lexical(answer=Reader(chat=chat, prompt=plain)), DATA)
    store = Store(tmp_path / "store")
    for part in range(4):
        shards.run_part(one, store, part, 4)
    asked = len(chat.asked)
    assert asked > 0
    one.run(store, ranked=shards.merge_parts(one, 4))
    assert len(chat.asked) == asked
    assert read_json(one.folder() / "manifest.json")["made"]["completions"] == asked


def test_a_missing_part_is_named_and_the_others_stand(tmp_path: Path) -> None:
    one, store = arm(tmp_path, data=DATA), Store(tmp_path / "store")
    for part in (0, 2):
        shards.run_part(one, store, part, 4)
    with pytest.raises(MemlabError, match="2 of 4 shards did not end: 2, 4"):
        shards.merge_parts(one, 4)
    for part in range(4):
        shards.run_part(one, store, part, 4)
    one.run(store, ranked=shards.merge_parts(one, 4))
    assert one.is_finished()
    shards.remove_parts(one)
    assert not shards.part_folder(one, 0, 4).parent.exists()
