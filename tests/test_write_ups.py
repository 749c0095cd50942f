"""Formulas, constants and worked examples that the five write-ups print, as the presets have them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.experiment.harness.sweep import read
from memlab.pipeline.tables import empty, frame
from memlab.stages.query.classify import PatternClassifier
from memlab.stages.rank.score import Score
from memlab.stages.rank.signals import Recency
from memlab.stages.rank.units import Rollup
from memlab.stages.write.relations import confidence
from memlab.store import Store
from tests.published import PRESETS, preset
from tests.stages.query.worlds import asked, done, searched
from tests.stages.rank.rankings import hits, world
from tests.stages.write.relations.worlds import told

MEMORYSTACK = [name for name in PRESETS if name.startswith("memorystack")]
RAG_V1 = [name for name in PRESETS if name.startswith("rag_v1")]


def in_order(score: Any, *lists: tuple[int, str, int, float, int], queries: int = 1) -> pl.DataFrame:
    """Rank these hits of the queries of one question; each is (query, lane, memory, score, rank)."""
    n = range(queries)
    asks = frame("queries", {"query": [*n], "question": [0] * queries, "kind": ["original", *["wording"] * queries][
        :queries], "text_id": [f"{q}" for q in n], "weight": [1.0] * queries})
    tables = world().updated({"queries": asks, "hits": hits(*lists)})
    return score.run(tables.only(score.reads), Store())["ranking"]


CONSTANTS: dict[str, dict[str, Any]] = {
    "rag_v1": {
        "extract.chunked.size": 1600, "extract.chunked.overlap": 320, "lexical.k1": 1.2, "lexical.b": 0.75,
        "score.weights": {"dense": 0.7, "lexical": 0.3}, "score.normaliser": {"dense": "none", "lexical": "max"},
        "rerank.pool": 40, "select.k": 20, "graph.hops": 2, "graph.most_entities": 10, "graph.most_links": 20,
        "graph.summary_chars": 500},
    "elizaos": {
        "chunk.size": 1000, "chunk.overlap": 200, "chunk.separators": ("\n\n", "\n", ". ", " "), "dense.floor": 0.5,
        "dense.depth": 40, "lexical.depth": 40, "score.method": "rrf", "score.rrf_k": 60, "score.threshold": 0.6,
        "select.k": 20, "pack.system": 2000, "pack.message": 500, "pack.history": 0.5, "pack.retrieved": 0.3},
    "memorystack": {
        "relate.related": 0.85, "relate.same_topic": 0.9, "relate.gate": 0.85, "relate.elaborates": 0.5,
        "relate.elaborates_confidence": 0.8, "score.rrf_k": 60, "expand.weight": 1.0,
        "boost.factors": {"preference": 1.3, "assistant": 1.4, "cross_session": 1.35}, "rerank.pool": 20,
        "rerank.max_chars": 200, "fuse.fill": {"llm": 0.3}, "fuse.depth": 30, "select.k": 15,
        "fuse.weights": {"boosted": 0.5, "relation": 0.2, "recency": 0.1, "llm": 0.2},
        "dense.sources": ("assistant",), "dense.search.depth": 30, "lexical.sources": ("assistant",)},
    "gimli": {
        "chunk.size": 400, "chunk.overlap": 80, "score.weights": {"dense": 0.7, "lexical": 0.3},
        "score.threshold": 0.35, "select.k": 6, "dense.depth": 6 * 4, "lexical.depth": 6 * 4},
    "oltramem": {
        "score.weights": {"dense": 0.7, "lexical": 0.3}, "rollup.method": "dcg_sum", "rollup.top_n": 10},
}


@pytest.mark.parametrize(("name", "at"), [(name, at) for name, of in CONSTANTS.items() for at in of])
def test_a_preset_has_the_constants_of_its_write_up(name: str, at: str) -> None:
    value: Any = preset(name)
    for part in at.split("."):
        value = getattr(value, part)
    assert value == CONSTANTS[name][at]


def test_v1_has_about_150_stop_words() -> None:
    assert 140 <= len(preset("rag_v1").lexical.stop_words) <= 160


@pytest.mark.parametrize("name", ["rag_v1", "rag_v1_corrected"])
def test_v1_repeats_requests_five_times_from_2_s_on_and_embeds_100_texts_at_a_time(name: str) -> None:
    words = [f"system={name}", "embedder=text_embedding_3_small", "rank/rerank=llm_listwise", "track=none"]
    (arm,) = read(words).arms
    extract, embedder = arm.pipeline.extract, arm.pipeline.dense.embedder
    assert (extract.chat.retries, extract.chat.first_wait, extract.chat.repairs) == (5, 2.0, 2)
    assert extract.at_once == 300 or name == "rag_v1_corrected"  # which extracts with another choice
    assert (embedder.batch, embedder.retries, embedder.dimensions) == (100, 3, 1536)
    assert (embedder.first_wait, embedder.waits) == (1.0, "linear")


@pytest.mark.parametrize("name", MEMORYSTACK)
def test_equation_2_is_one_sum_over_all_queries_and_both_lanes(name: str) -> None:
    """Rank 1 in all six lists of three queries: 6/61 = .0984."""
    first = [(q, lane, 0, 9.0 - q, 1) for q in range(3) for lane in ("dense:turn", "lexical:turn")]
    others = [(0, "dense:turn", 1, .5, 2), (2, "dense:turn", 1, .5, 3), (1, "lexical:turn", 1, .5, 2)]
    scores = in_order(preset(name).score, *first, *others, queries=3)["score"].to_list()
    assert scores == pytest.approx([6 / 61, 2 / 62 + 1 / 63], abs=1e-6)
    assert round(scores[0], 4) == .0984


@pytest.mark.parametrize("name", MEMORYSTACK)
def test_equation_2_with_one_query_is_reciprocal_rank_fusion_and_neighbours_are_one_more_list(name: str) -> None:
    ranks = [(0, "dense:turn", 0, .9, 1), (0, "lexical:turn", 0, 8.0, 1), (0, "dense:turn", 1, .8, 2)]
    assert in_order(preset(name).score, *ranks)["score"].to_list() == pytest.approx([2 / 61, 1 / 62], abs=1e-6)
    linked = in_order(preset(name).score, *ranks, (0, "neighbours:turn", 1, 1.0, 1))["score"].to_list()
    assert linked == pytest.approx([2 / 61, 1 / 62 + 1 / 61], abs=1e-6)


@pytest.mark.parametrize("settings", [{}, {"method": "weighted", "normaliser": "minmax"}])
def test_sums_over_queries_are_refused_for_scores_that_are_no_ranks(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="choose method: rrf"):
        Score(queries="summed", **settings)


@pytest.mark.parametrize(("name", "text_score"), [("gimli", 1 / 2), ("gimli_corrected", 1.0)])
def test_a_hit_of_the_word_search_alone_has_no_vector_score(name: str, text_score: float) -> None:
    score = preset(name).score
    found = (0, "lexical:turn", 1, 9.0, 1), (0, "dense:turn", 0, .694, 1), (0, "dense:turn", 2, .9, 1)
    everything = in_order(Score(weights=score.weights, normaliser=score.normaliser, fill=score.fill), *found)
    assert dict(everything.select("unit", "score").iter_rows()) == pytest.approx(
        {2: .63, 0: .4858, 1: .3 * text_score}, abs=1e-6)
    assert everything.filter(unit=1)["dense:turn"].to_list() == [None]  # reports still tell that it was not found
    assert in_order(score, *found)["unit"].to_list() == [2, 0]  # .15, and .3 with ranks from 0, are under .35


def test_the_word_search_alone_gives_15_hundredths_in_gimli() -> None:
    only = in_order(Score(weights={"dense": .7, "lexical": .3}, normaliser=preset("gimli").score.normaliser,
                          fill=preset("gimli").score.fill), (0, "lexical:turn", 1, 9.0, 1))
    assert only["score"].to_list() == [.15]
    assert in_order(preset("gimli").score, (0, "lexical:turn", 1, 9.0, 1)).is_empty()


def test_a_first_place_of_both_lanes_does_not_pass_elizaos_own_filter() -> None:
    """Two lists give 2/61 = .033 at most, and the filter keeps what has more than .6."""
    both = (0, "dense:elizaos", 0, .9, 1), (0, "lexical:elizaos", 0, 9.0, 1)
    assert in_order(preset("elizaos").score, *both).is_empty()
    plain = Score(method="rrf", normaliser="none")
    assert in_order(plain, *both)["score"].to_list() == pytest.approx([2 / 61], abs=1e-6)


@pytest.mark.parametrize("name", [*MEMORYSTACK, *RAG_V1])
@pytest.mark.parametrize("question", ["What did I do last Tuesday?", "Last month, which films did I see?"])
def test_the_printed_questions_about_time_are_temporal(name: str, question: str) -> None:
    classify: PatternClassifier = preset(name).classify
    assert classify.classify(question) == ("temporal",)


@pytest.mark.parametrize("name", MEMORYSTACK)
@pytest.mark.parametrize("question", ["How long is my commute?", "how long is my commute"])
def test_a_commute_is_searched_for_by_its_duration_and_as_travel_time(name: str, question: str, tmp_path: Path) -> None:
    added = searched(done(preset(name, lambda _: json.dumps({"queries": []})).expand, asked(question), Store(tmp_path)))
    assert added == [(0, "original", question, 1.0), (0, "wording", "duration of commute", 1.0),
                     (0, "wording", "travel time to work", 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("new", ["I prefer Thai food now.", "Thai is my go-to.", "These days, Thai is my go-to."])
def test_the_go_to_cuisine_that_moves_from_italian_to_thai_is_superseded(new: str, tmp_path: Path) -> None:
    """The published gate stops it with this encoder, as with MiniLM; the corrected preset has none."""
    tables = told((0, 0, "I love Italian food."), (1, 61, new)).updated({"edges": empty("edges")})
    for name, expected in (("memorystack_fast", []), ("memorystack_fast_corrected", [.95])):
        edges = preset(name).run(tables, Store(tmp_path), until="relate")["edges"].filter(kind="SUPERSEDES")
        assert edges["confidence"].to_list() == expected, name


def test_confidence_grows_with_the_gap_up_to_60_days() -> None:
    assert [round(float(confidence(days)), 4) for days in (0, 30, 59, 60, 61, 365)] == [
        .75, .85, .9467, .95, .95, .95]


def test_ages_count_as_printed() -> None:
    """exp(-age / 30) for MemoryStack, from now as published and from the question's day in its corrected form."""
    recency = {name: next(s for s in preset(name).fuse.signals if isinstance(s, Recency)) for name in MEMORYSTACK}
    assert {(signal.form, signal.days) for signal in recency.values()} == {("exp", 30.0)}
    assert {name for name, signal in recency.items() if signal.clock == "wall"} == {"memorystack", "memorystack_fast"}


def test_the_fast_mode_of_memorystack_asks_no_model() -> None:
    fast = preset("memorystack_fast")
    assert type(fast.rerank).__name__ == "EmptyStage"
    assert not hasattr(fast.expand, "chat")
    assert fast.fuse.weights == {"boosted": .5, "relation": .2, "recency": .1, "llm": 0.0}


def test_oltramems_sessions_gain_one_over_log2_of_rank_and_one() -> None:
    rollup = preset("oltramem").rollup
    assert isinstance(rollup, Rollup)
    found = [(0, "dense:turn", memory, 9.0 - memory, memory + 1) for memory in (0, 1, 2)]  # sessions 0, 0 and 1
    ranking = in_order(Score(normaliser="none"), *found)
    tables = world().updated({"ranking": ranking, "units": Score().run(
        world().updated({"hits": hits(*found)}).only(Score.reads), Store())["units"]})
    rolled = rollup.run(tables.only(rollup.reads), Store())["ranking"]
    assert rolled["score"].to_list() == pytest.approx([1 + 1 / math.log2(3), 1 / math.log2(4)], abs=1e-6)
