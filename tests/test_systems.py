"""The presets: they compose, no one sees gold or a later day, odd input ends in defined results, every stage counts."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from memlab.data.benchmarks import Builder
from memlab.experiment.harness.arm import refusal
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import GOLD, Tables
from tests.examples import rest_at_night
from tests.published import FITTED, ORACLES, PRESETS, PUBLISHED, SAMPLE, TAINTED, clear, preset
from tests.small import lives
from tests.test_leaks import found_sessions, fresh, planted, shuffled

pytestmark = pytest.mark.slow

BLIND = [name for name in PRESETS if name not in (*ORACLES, *TAINTED, *FITTED)]


def test_the_five_systems_their_corrections_and_the_controls_are_there() -> None:
    assert set(PRESETS) >= {"rag_v1", "elizaos", "memorystack", "gimli", "oltramem", "plain", "best", "oracle",
                            "full_context", "no_memory", "random", "rag_v1_corrected", "elizaos_corrected",
                            "memorystack_corrected", "gimli_corrected"}


@pytest.mark.parametrize("name", rest_at_night(BLIND, SAMPLE))
def test_shuffled_gold_changes_no_ranking_and_no_context(name: str, tmp_path: Path) -> None:
    tables, pipeline = lives().load(), preset(name)
    one, two = (fresh(pipeline, t, tmp_path / str(i)) for i, t in enumerate((tables, shuffled(tables))))
    assert not pipeline.uses_oracle()
    assert not pipeline.tainted()
    for table in set(one) - GOLD:
        assert one[table].equals(two[table]), table


def test_the_arm_that_shows_ids_is_the_only_tainted_one(tmp_path: Path) -> None:
    assert [name for name in PRESETS if preset(name).tainted()] == list(TAINTED)
    tables, pipeline = lives().load(), preset(TAINTED[0])
    one, two = (fresh(pipeline, t, tmp_path / str(i)) for i, t in enumerate((tables, shuffled(tables))))
    assert one["ranking"].equals(two["ranking"])  # ids are shown, never searched
    assert not one["context"].equals(two["context"])  # but the reader sees them


@pytest.mark.parametrize("name", FITTED)
def test_a_system_that_is_fitted_here_is_no_oracle_and_refuses_to_be_sharded(name: str) -> None:
    assert not preset(name).uses_oracle()
    assert "learns from all questions" in str(refusal(preset(name)))


@pytest.mark.parametrize("name", rest_at_night([*BLIND, *FITTED], {*SAMPLE, *FITTED}))
def test_what_is_said_on_a_later_day_is_out_of_reach(name: str, tmp_path: Path) -> None:
    future = planted(lives().load(), days=1)
    last = future["sessions"]["session"].max()
    assert last not in found_sessions(fresh(preset(name), future, tmp_path))


ODD = {
    "one word": [[("user", "Hm")]],
    "one session": [[("user", "I adopted a cat named Miso."), ("assistant", "Lovely!")]],
    "another language": [[("user", "Я переехал в Берлин в прошлую пятницу.")],
                         [("user", "猫を飼い始めました。名前はミソです。")]],
    "blank": [[("user", "  "), ("assistant", "")], [("user", "I moved to Berlin last Friday.")]],
}


def talk(sessions: list[list[tuple[str, str]]], question: str = "Where do I live now?") -> Tables:
    build = Builder()
    build.corpus(corpus=0, name="c")
    for s, turns in enumerate(sessions):
        build.session(corpus=0, session=s, said_on=datetime(2023, 5, 20 + s), name=f"s{s}")
        for t, (role, text) in enumerate(turns):
            build.turn(corpus=0, session=s, turn=t, role=role, speaker=None, text=text, name=f"s{s}t{t}")
    build.question(question=0, corpus=0, text=question, asked_on=datetime(2023, 6, 30), name="q", answer="?",
                   category="single-session-user", abstain=False, scored=True)
    build.evidence(question=0, session=0, turn=0)
    return build.tables()


@pytest.mark.parametrize("name", rest_at_night(BLIND, SAMPLE))
@pytest.mark.parametrize("what", ODD)
def test_odd_input_ends_in_defined_results(name: str, what: str, tmp_path: Path) -> None:
    made = fresh(preset(name), talk(ODD[what]), tmp_path)
    assert made["ranking"]["score"].is_finite().all()
    assert made["context"]["tokens"].ge(0).all()
    said = made["turns"].join(made["texts"], on="text_id")
    spoken = said.filter(pl.col("text").str.strip_chars() != "")["session"].unique()
    assert set(spoken) <= set(made["memories"]["session"])  # no session is lost by what a model failed to extract


@pytest.mark.parametrize("name", rest_at_night(PUBLISHED, SAMPLE))
def test_every_part_of_a_system_can_change_a_ranking_or_a_context(name: str, tmp_path: Path) -> None:
    """On small lives; what moves nothing there must be a part whose effect the named test shows by hand."""
    tables, whole = lives(lives=3, sessions=14, questions=13).load(), preset(name, clear)
    reference = fresh(whole, tables, tmp_path)
    idle = {slot for slot in PARTS if not isinstance(getattr(whole, slot), EmptyStage)
            and not _moves(whole.replace(**{slot: EmptyStage()}), reference, tables, tmp_path)}
    assert idle <= ELSEWHERE.get(name, set()), idle


PARTS = ("anchor", "extract", "relate", "expand", "time", "boost", "rerank", "fuse", "rollup", "graph")
# no question of the lives names a time, and none is worded as one about the present: shown in
# tests/stages/rank/test_boost.py and tests/stages/rank/test_signals_relation.py
_CORRECTED = {"relate", "boost", "time"}
ELSEWHERE: dict[str, set[str]] = {"rag_v1_corrected": _CORRECTED, "rag_v1_local_corrected": _CORRECTED}


def _moves(without: Pipeline, reference: Tables, tables: Tables, root: Path) -> bool:
    made = fresh(without, tables, root)
    key = ["question", "rank", "unit"]
    return not (made["ranking"].select(key).equals(reference["ranking"].select(key))
                and made["context"].equals(reference["context"]))
