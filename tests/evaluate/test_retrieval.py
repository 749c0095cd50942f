from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluate import retrieval as r
from memlab.evaluate.retrieval import retrieval
from tests.examples import fewer

INF, NAN = np.inf, np.nan
FOUND = np.array([[1.0, 4.0, INF], [2.0, NAN, NAN], [NAN, NAN, NAN], [INF, NAN, NAN]])


def one(metrics: pl.DataFrame, question: int, name: str) -> float | None:
    return metrics.filter(pl.col("question") == question)[name].item()


def same(values: np.ndarray, expected: list[float]) -> None:
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_formulas_by_hand() -> None:
    same(r.recall_any(FOUND, 1), [1, 0, NAN, 0])
    same(r.recall_all(FOUND, 5), [0, 1, NAN, 0])
    same(r.recall(FOUND, 5), [2 / 3, 1, NAN, 0])
    same(r.precision(FOUND, 5), [2 / 5, 1 / 5, NAN, 0])
    same(r.reciprocal_rank(FOUND), [1, 1 / 2, NAN, 0])
    same(r.reciprocal_rank(FOUND, 1), [1, 0, NAN, 0])
    ideal = 1 + 1 / np.log2(3) + 1 / np.log2(4)
    same(r.ndcg(FOUND, 5), [(1 + 1 / np.log2(5)) / ideal, 1 / np.log2(3), NAN, 0])
    same(r.ndcg(FOUND, 1), [1, 0, NAN, 0])


def test_a_unit_that_holds_two_pieces_of_evidence_counts_once_in_precision_and_keeps_ndcg_in_bounds() -> None:
    found = np.array([[2.0, 2.0, 5.0]])
    same(r.precision(found, 5), [2 / 5])
    dcg, ideal = 2 / np.log2(3) + 1 / np.log2(6), 2 + 1 / np.log2(3)
    same(r.ndcg(found, 5), [dcg / ideal])
    same(r.ndcg(np.array([[1.0, 1.0, 2.0]]), 5), [1])


def test_session_units_have_no_turn_metrics(make_world) -> None:
    tables = make_world({0: [["user"] * 2, ["user"]]}, {0: [(1, 0)]}, {0: [1, 0]}, level="session")
    metrics = retrieval(tables)
    assert one(metrics, 0, "session/recall_any@1") == 1
    assert not [c for c in metrics.columns if c.startswith("turn/")]


def test_a_turn_is_found_at_the_first_memory_that_covers_it(make_world) -> None:
    spans = [(0, 0, [0, 1]), (0, 0, [1, 2]), (0, 1, [0])]
    tables = make_world({0: [["user"] * 3, ["user"]]}, {0: [(0, 1), (0, 2)]}, {0: [2, 1, 0]}, level="memory",
                        spans=spans)
    metrics = retrieval(tables)
    assert one(metrics, 0, "turn/mrr") == 1 / 2
    assert one(metrics, 0, "turn/recall_all@3") == 1
    assert one(metrics, 0, "turn/precision@5") == 1 / 5
    assert one(metrics, 0, "turn/ndcg@10") == pytest.approx(1 / np.log2(3))


def test_questions_that_do_not_count_are_null_and_unfound_evidence_is_zero(make_world) -> None:
    world = {0: [["user"], ["user"]]}
    tables = make_world(world, {0: [(1, 0)], 1: [(1, 0)], 2: [(1, None)], 3: []},
                        {0: [0], 1: [1], 2: [1], 3: [1]}, unscored=(1,))
    metrics = retrieval(tables)
    assert metrics["question"].to_list() == [0, 1, 2, 3]
    assert metrics["session/recall_any@50"].to_list() == [0, None, 1, None]
    assert metrics["turn/recall_any@50"].to_list() == [0, None, None, None]  # of 2 only the session is known


@given(st.integers(0, 10_000))
@fewer(4)  # the plain loops are slow
def test_against_plain_loops(make_random_world, seed: int) -> None:
    tables = make_random_world(seed)
    metrics = retrieval(tables)
    units = {u["unit"]: u for u in tables["units"].to_dicts()}
    for q in tables["questions"].to_dicts():
        gold = [e for e in tables["evidence"].to_dicts() if e["question"] == q["question"]]
        order = [units[u] for u in tables["ranking"].filter(question=q["question"]).sort("rank")["unit"]]
        sessions = list(dict.fromkeys(u["session"] for u in order))
        turns = [(u["session"], u["turns"][0]) for u in order]
        for prefix, listed, wanted in (
                ("session", sessions, {e["session"] for e in gold}),
                ("turn", turns, {(e["session"], e["turn"]) for e in gold if e["turn"] is not None})):
            for k in (1, 5, 10):
                hit = [x in wanted for x in listed[:k]]
                at = hit.index(True) + 1 if any(hit) else None
                expected = {f"{prefix}/mrr@10": 1 / at if at else 0.0} if k == 10 else {}
                expected |= {
                    f"{prefix}/recall@{k}": sum(hit) / max(len(wanted), 1),
                    f"{prefix}/precision@{k}": sum(hit) / k,
                    f"{prefix}/recall_all@{k}": float(sum(hit) == len(wanted)),
                    f"{prefix}/ndcg@{k}": sum(h / np.log2(i + 2) for i, h in enumerate(hit))
                    / max(sum(1 / np.log2(i + 2) for i in range(min(k, len(wanted)))), 1e-9),
                }
                for name, value in expected.items():
                    got = one(metrics, q["question"], name)
                    assert got == (pytest.approx(value) if wanted else None), name
