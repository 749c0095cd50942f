from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.rank.fusion import Scorer
from memlab.rank.score import RoutedScore, Score
from memlab.store import Store
from memlab.tables import frame
from tests.rank.rankings import hits, world

FOUND = hits((0, "dense:turn", 0, .9, 1), (0, "dense:turn", 1, .1, 2), (0, "lexical:turn", 1, 9.0, 1),
             (1, "dense:turn", 6, .9, 1), (1, "dense:turn", 7, .1, 2), (1, "lexical:turn", 7, 9.0, 1))
WORDS = Scorer(normaliser="minmax", weights={"lexical": 1, "dense": 0})
MEANING = Scorer(normaliser="minmax", weights={"lexical": 0, "dense": 1})


def run(stage: RoutedScore | Score, *classes: tuple[int, str], found: pl.DataFrame = FOUND) -> pl.DataFrame:
    told = frame("classes", {"question": [q for q, _ in classes], "class": [c for _, c in classes]})
    tables = world().updated({"hits": found, "classes": told})
    return stage.run(tables.only(stage.reads), Store())["ranking"]


def test_each_class_has_its_scorer_and_the_others_the_usual_one() -> None:
    words = hits((0, "dense:turn", 0, .9, 1), (0, "dense:turn", 1, .1, 2), (0, "lexical:turn", 1, 9.0, 1),
                 (0, "lexical:turn", 0, 1.0, 2), (1, "dense:turn", 6, .9, 1), (1, "dense:turn", 7, .1, 2),
                 (1, "lexical:turn", 7, 9.0, 1), (1, "lexical:turn", 6, 1.0, 2))
    stage = RoutedScore(routes={"factual": WORDS}, usual=MEANING)
    assert run(stage, (0, "factual"), (1, "conceptual"), found=words)["unit"].to_list() == [1, 0, 6, 7]
    assert run(stage, (0, "conceptual"), (1, "factual"), found=words)["unit"].to_list() == [0, 1, 7, 6]
    assert run(stage, found=words)["unit"].to_list() == [0, 1, 6, 7]  # nobody classified


def test_the_first_class_of_a_question_decides_and_kin_stands_in() -> None:
    stage = RoutedScore(routes={"counting": Scorer(normaliser="none", threshold=100.0)}, usual=MEANING)
    assert run(stage, (0, "factual"), (0, "counting"), (1, "factual")).height == 4
    assert run(stage, (0, "counting"), (0, "factual"), (1, "factual"))["question"].to_list() == [1, 1]
    assert run(stage, (0, "multi_session"), (1, "factual"))["question"].to_list() == [1, 1]


def test_one_scorer_for_all_is_rank_score() -> None:
    routed = run(RoutedScore(routes={"factual": MEANING}, usual=MEANING), (0, "factual"), (1, "update"))
    assert routed.equals(run(Score(normaliser="minmax", weights={"lexical": 0, "dense": 1})))


def test_wrong_names_are_told() -> None:
    with pytest.raises(ValidationError, match="did you mean 'factual'"):
        RoutedScore(routes={"factul": WORDS})
    with pytest.raises(ValidationError, match="at least 1"):
        RoutedScore(routes={})
    with pytest.raises(MemlabError, match="no signal is called 'late'"):  # though no question takes that route
        run(RoutedScore(routes={"update": Scorer(weights={"late": 1})}), (0, "factual"))
