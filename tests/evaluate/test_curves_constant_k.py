from __future__ import annotations

import pytest

from memlab.errors import MemlabError
from memlab.evaluate.curves import constant_k
from memlab.evaluate.summary import averages, per_question


def test_a_curve_by_hand(make_world) -> None:
    tables = make_world({0: [["user"] * 2, ["user"] * 2]}, {0: [(0, 0), (1, 1)], 1: [(0, 1)], 2: []},
                        {0: [0, 2, 3], 1: [3, 1], 2: [1]})
    curve = constant_k(tables, largest=4)
    assert [p["k"] for p in curve["selected/turn/recall"]] == [1, 2, 3, 4]
    assert [p["value"] for p in curve["selected/turn/recall"]] == [.25, .75, 1, 1]
    assert [p["value"] for p in curve["selected/session/recall_all"]] == [0, 1, 1, 1]
    assert [p["tokens"] for p in curve["selected/turn/recall"]] == [70 / 3, 120 / 3, 160 / 3, 160 / 3]


def test_the_curve_passes_through_the_arm_with_that_k(make_random_world) -> None:
    tables = make_random_world(3)  # selects the first 3
    figures = averages(per_question(tables))
    curve = constant_k(tables)
    for name, points in curve.items():
        assert points[2]["value"] == pytest.approx(figures[name])
        assert points[2]["tokens"] == pytest.approx(figures["context/tokens_mean"])


def test_an_unmeasured_ranking_is_refused(make_random_world) -> None:
    tables = make_random_world(1)
    with pytest.raises(MemlabError, match="run read/measure"):
        constant_k(tables.updated({"ranking": tables["ranking"].drop("tokens")}))
