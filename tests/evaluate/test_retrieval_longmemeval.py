from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.benchmarks import Builder
from memlab.evaluate import retrieval
from memlab.evaluate.score.arm import match
from memlab.evaluate.score.runs import Run
from tests.examples import fewer

UA = ["user", "assistant"]


def test_ranks_one_and_two_weigh_the_same() -> None:
    found = np.array([[1.0, np.inf], [2.0, np.nan], [2.0, 3.0], [np.nan, np.nan]])
    ideal = 1 + 1  # two gold units: 1 + 1/log2(2)
    np.testing.assert_allclose(retrieval.official_ndcg(found, 5), [1 / ideal, 1, (1 + 1 / np.log2(3)) / ideal, 0])
    np.testing.assert_allclose(retrieval.official_ndcg(found, 1), [1, 0, 0, 0])
    np.testing.assert_allclose(retrieval.official_recall_any(found, 2), [1, 1, 1, 0])
    np.testing.assert_allclose(retrieval.official_recall_all(found, 2), [0, 1, 0, 1])


def world(make_world, **settings):
    # session 0: user evidence; session 1: the assistant's evidence only; session 2: none; all turns: u, a
    # question 0: both sessions; 1: only the assistant's; 2: abstention; 3: only the session is known
    evidence = {0: [(0, 0), (1, 1)], 1: [(1, 1)], 2: [(0, 0)], 3: [(1, None)]}
    return make_world({0: [UA, UA, UA]}, evidence, settings.pop("rankings"), abstain=(2,), unscored=(), **settings)


def test_only_the_users_side_is_gold_and_the_two_averages_differ(make_world) -> None:
    metrics = retrieval.official_metrics(world(make_world, level="session", rankings={q: [2, 0, 1] for q in range(4)}))
    strict, noabs = "official/session/strict/", "official/session/noabs/"
    assert metrics[strict + "recall_all@3"].to_list() == [1, None, None, None]
    assert metrics[noabs + "recall_all@3"].to_list() == [1, 1, None, 1]
    assert metrics[noabs + "recall_any@3"].to_list() == [1, 0, None, 0]
    assert metrics[noabs + "ndcg_any@3"].to_list() == [1, 0, None, 0]
    assert metrics[strict + "recall_all@1"].to_list() == [0, None, None, None]
    assert not [c for c in metrics.columns if c.startswith("official/turn")]


def official(ranked: list[str], documents: list[str], k: int, to_sessions: bool = False) -> tuple[float, float, float]:
    """Compute recall_any, recall_all and ndcg_any as LongMemEval's code does, from its ids of documents."""
    gold = {name for name in documents if "answer" in name}
    cut = k
    if to_sessions:
        ranked, documents = ([name.rpartition("_")[0] for name in names] for names in (ranked, documents))
        gold = {name.rpartition("_")[0] for name in gold}
        while cut <= len(documents) and len({*ranked[:cut]}) < k:
            cut += 1

    def dcg(names: list[str]) -> float:
        flags = [float(name in gold) for name in names[:cut]]
        return sum(flag / (1 if place == 0 else np.log2(place + 1)) for place, flag in enumerate(flags))

    ideal = dcg(sorted(documents, key=lambda name: name not in gold))
    return (float(bool(gold & {*ranked[:cut]})), float(gold <= {*ranked[:cut]}), dcg(ranked) / ideal if ideal else 0.0)


@fewer(4)
@given(st.integers(0, 2**32 - 1))
def test_logs_of_sessions_and_turns_have_the_figures_of_the_official_code(seed: int) -> None:
    rng = np.random.default_rng(seed)
    build = Builder()
    sessions = [("answer_1", 4), ("f1", 2), ("answer_2", 3), ("f2", 5), ("f1", 2), ("answer_3", 1)]
    answering = {(name, turn) for name, turns in sessions for turn in range(0, turns, 2)
                 if name.startswith("answer") and rng.random() < .6}
    for number, (name, turns) in enumerate(sessions):
        build.session(corpus=0, session=number, said_on=None, name=name)
        for turn in range(turns):
            build.turn(corpus=0, session=number, turn=turn, role=UA[turn % 2], speaker=None, text="?",
                       name=f"{name}_{turn + 1}")
        held = [turn for turn in range(turns) if (name, turn) in answering]
        for turn in held or [None] * name.startswith("answer"):
            build.evidence(question=0, session=number, turn=turn)
    build.question(question=0, corpus=0, text="?", asked_on=None, name="q", answer="x", category="c", abstain=False,
                   scored=True)
    turn_ids = [f"{name}_{turn + 1}" if (name, turn) in answering else f"{name}_{turn + 1}".replace("answer", "noans")
                for name, turns in sessions for turn in range(0, turns, 2)]
    session_ids = [name if {*answering} & {(name, turn) for turn in range(turns)} else name.replace("answer", "noans")
                   for name, turns in sessions]
    for level, documents in (("session", session_ids), ("turn", turn_ids)):
        ranked = [documents[i] for i in rng.permutation(len(documents))]
        run = Run(pl.DataFrame({"topic": "q", "document": ranked, "score": [-1.0 * i for i in range(len(ranked))]}),
                  "LongMemEval retrieval log")
        matched = match(run, build.tables())
        assert matched.faults == []
        tables = build.tables().updated({"units": matched.units, "ranking": matched.ranking, "ids": matched.ids})
        metrics = retrieval.official_metrics(tables)
        for k in retrieval.LONGMEMEVAL_KS:
            for to in ("session",) if level == "session" else ("turn", "session"):
                found = [metrics[f"official/{to}/noabs/{name}@{k}"].item() for name in (
                    "recall_any", "recall_all", "ndcg_any")]
                assert found == pytest.approx(official(ranked, documents, k, level != to)), (level, to, k)


def test_memories_of_one_user_turn_or_one_session_each_are_judged_as_such(make_world) -> None:
    by_turn = world(make_world, level="memory", rankings={0: [0, 1]},
                    spans=[(0, 0, [0]), (0, 0, [1]), (0, 1, [0])])
    assert "official/turn/strict/ndcg_any@1" in retrieval.official_metrics(by_turn).columns
    by_session = world(make_world, level="memory", rankings={0: [0, 1]}, spans=[(0, 0, [0, 1]), (0, 1, [0, 1])])
    assert "official/session/strict/ndcg_any@1" in retrieval.official_metrics(by_session).columns
    passages = world(make_world, level="memory", rankings={0: [0, 1]}, spans=[(0, 0, [0, 1]), (0, 0, [1])])
    assert retrieval.official_metrics(passages).columns == ["question"]


def test_a_ranking_that_ends_before_its_gold_has_no_figure_below_its_end(make_world) -> None:
    metrics = retrieval.official_metrics(world(make_world, level="session", rankings={0: [2], 1: [2]}))
    assert metrics["official/session/strict/recall_any@1"].to_list() == [0, None]
    assert metrics["official/session/strict/recall_any@3"].null_count() == 2
    assert metrics["official/session/noabs/recall_all@3"].null_count() == 2
    # all gold found: k can be any
    whole = retrieval.official_metrics(world(make_world, level="session", rankings={0: [0], 1: [2]}))
    assert whole["official/session/noabs/recall_all@50"].to_list() == [1, 1]


def test_data_of_two_named_people_has_no_official_figures(make_world) -> None:
    tables = make_world({0: [["user"], ["user"]]}, {0: [(0, 0)]}, {0: [0]}, level="session")
    assert retrieval.official_metrics(tables).columns == ["question"]
    named = world(make_world, level="session", rankings={0: [0]})
    named = named.updated({"turns": named["turns"].with_columns(speaker=pl.lit("Ann"))})
    assert retrieval.official_metrics(named).columns == ["question"]
