"""The first ranking: fused lanes, routes by class, and a random order."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.pipeline.tables import Tables, empty, frame, text_hash, texts_frame
from memlab.stages.rank.fusion import Scorer
from memlab.stages.rank.score import RandomScore, RoutedScore, Score, fused_queries
from memlab.stages.rank.units import Level
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.rank.rankings import TURNS, hits, world

STORE = Store()


def run(stage: Score, found, tables: Tables | None = None) -> Tables:
    tables = (tables or world()).updated({"hits": found})
    return stage.run(tables.only(stage.reads), STORE)


def test_units_are_row_numbers_of_sorted_turns_and_sessions() -> None:
    found = hits((0, "a:turn", 4, 1.0, 1))
    turns = run(Score(), found)["units"]
    assert turns["unit"].to_list() == list(range(len(TURNS)))
    assert turns["turns"].to_list() == [[t] for _, _, t in TURNS]
    sessions = run(Score(level="session"), found)["units"]
    assert sessions["turns"].to_list() == [[0, 1], [0, 1, 2], [0], [0, 1]]
    assert sessions["unit"].to_list() == [0, 1, 2, 3]


def test_lanes_become_columns_and_a_session_lane_speaks_for_all_its_turns() -> None:
    found = hits((0, "d:turn", 2, .9, 1), (0, "d:turn", 0, .1, 2), (0, "l:session", 101, 5.0, 1),
                 (0, "l:session", 102, 3.0, 2))
    table = run(Score(normaliser="none"), found)["ranking"]
    rows = {u: (dense, lexical) for u, dense, lexical in table.select("unit", "d:turn", "l:session").iter_rows()}
    assert rows == {0: (.1, None), 2: (.9, 5.0), 3: (None, 5.0), 4: (None, 5.0), 5: (None, 3.0)}
    # raw sums, a miss filled with the lane's lowest: unit 2: .9+5, 3 and 4: .1+5, 0 and 5: .1+3
    assert table["unit"].to_list() == [2, 3, 4, 0, 5]
    assert table["score"].to_list() == pytest.approx([5.9, 5.1, 5.1, 3.1, 3.1])
    assert table.columns[:5] == ["question", "unit", "score", "rank", "selected"]


def test_a_unit_takes_its_best_memory_of_a_lane() -> None:
    found = hits((0, "d:turn", 2, .2, 2), (0, "d:turn", 4, .9, 1), (0, "d:turn", 0, .3, 3))
    table = run(Score(level="session", normaliser="none"), found)["ranking"]
    assert table.select("unit", "d:turn").rows() == [(1, .9), (0, .3)]


def test_several_queries_of_a_question_are_fused_by_weighted_ranks() -> None:
    queries = frame("queries", {"query": [0, 1, 2], "question": [0, 1, 0], "weight": [2.0, 1.0, 1.0]})
    found = hits((0, "d:turn", 0, .9, 1), (0, "d:turn", 2, .8, 2), (2, "d:turn", 2, 40.0, 1), (1, "d:turn", 6, .5, 1))
    table = run(Score(normaliser="none"), found, world().updated({"queries": queries}))["ranking"]
    assert table.select("question", "unit").rows() == [(0, 2), (0, 0), (1, 6)]
    assert table["score"].to_list() == pytest.approx([2 / 62 + 1 / 61, 2 / 61, .5], abs=1e-6)


def test_a_lane_of_a_role_that_says_nothing_here_is_a_signal_without_values() -> None:
    found = hits((0, "lexical:turn", 2, .9, 1), (0, "lexical:turn", 0, .1, 2))
    weights = {"lexical:turn": 1.0, "lexical:turn.assistant": 2.0}
    table, alone = (run(Score(weights=names), found)["ranking"] for names in (weights, {"lexical:turn": 1.0}))
    assert table["lexical:turn.assistant"].null_count() == table.height
    assert table.select("unit", "score").equals(alone.select("unit", "score"))
    for misspelt in ("lexical:turn.asistant", "lexical:turns", "lexcal:turn.user"):
        with pytest.raises(MemlabError, match=f"no signal is called '{misspelt}'"):
            run(Score(weights={"lexical:turn": 1.0, misspelt: 1.0}), found)


def test_level_memory_ranks_one_kind_and_refuses_two() -> None:
    found = hits((0, "d:session", 101, .9, 1), (0, "d:session", 100, .1, 2))
    one = run(Score(level="memory", normaliser="none"), found)
    assert one["ranking"]["unit"].to_list() == [101, 100]
    assert one["units"].filter(unit=101)["turns"].to_list() == [[0, 1, 2]]
    with pytest.raises(MemlabError, match="several kinds \\(session, turn\\)"):
        run(Score(level="memory"), hits((0, "d:session", 101, .9, 1), (0, "d:turn", 0, .1, 2)))


def test_auto_goes_by_what_was_found() -> None:
    sessions = run(Score(), hits((0, "d:session", 101, .9, 1), (0, "d:session", 100, .1, 2)))
    assert sessions["units"]["level"].unique().to_list() == ["session"]
    assert sessions["ranking"]["unit"].to_list() == [1, 0]
    both = run(Score(), hits((0, "d:session", 101, .9, 1), (0, "d:turn", 0, .1, 2)))
    assert both["units"]["level"].unique().to_list() == ["turn"]


def test_no_hits_give_an_empty_ranking() -> None:
    made = run(Score(), empty("hits"))
    assert made["ranking"].is_empty()
    assert made["units"].height == len(TURNS)


def test_a_made_up_answer_is_a_lane_of_its_own_beside_the_raw_scores_of_the_question() -> None:
    """Question 0 has a hyde query, 1 none: no lane of the question is fused, and the new one has a name to weigh."""
    queries = frame("queries", {"query": [0, 1, 2], "question": [0, 1, 0], "kind": ["original", "original", "hyde"],
                                "text_id": ["a", "b", "c"], "weight": [1.0, 1.0, 1.0]})
    found = hits((0, "dense:turn", 0, .9, 1), (0, "dense:turn", 1, .5, 2), (1, "dense:turn", 6, .8, 1),
                 (2, "dense:turn", 1, .7, 1), (2, "dense:turn", 2, .6, 2))
    fused = fused_queries(found, queries, 60)
    assert sorted(fused.rows()) == [
        (0, "dense:turn", 0, .9), (0, "dense:turn", 1, .5), (0, "hyde:dense:turn", 1, .7),
        (0, "hyde:dense:turn", 2, .6), (1, "dense:turn", 6, .8)]
    stage = Score(normaliser="none", weights={"hyde": .5})
    ranking = stage.run(world().updated(Tables(hits=found, queries=queries)).only(stage.reads), Store())["ranking"]
    assert ranking.filter(question=0).select("unit", "score").rows() == [(0, 1.2), (1, .85), (2, .8)]


def test_several_made_up_answers_are_fused_among_themselves() -> None:
    queries = frame("queries", {"query": [0, 1, 2], "question": [0] * 3, "kind": ["original", "hyde", "hyde"],
                                "text_id": ["a", "b", "c"], "weight": [1.0, 1.0, .5]})
    found = hits((0, "x:turn", 0, .9, 1), (1, "x:turn", 0, .9, 1), (2, "x:turn", 0, .9, 2))
    assert sorted(fused_queries(found, queries, 60).rows()) == [(0, "hyde:x:turn", 0, 1 / 61 + .5 / 62),
                                                                (0, "x:turn", 0, .9)]


FOUND = hits((0, "dense:turn", 0, .9, 1), (0, "dense:turn", 1, .1, 2), (0, "lexical:turn", 1, 9.0, 1),
             (1, "dense:turn", 6, .9, 1), (1, "dense:turn", 7, .1, 2), (1, "lexical:turn", 7, 9.0, 1))
WORDS = Scorer(normaliser="minmax", weights={"lexical": 1, "dense": 0})
MEANING = Scorer(normaliser="minmax", weights={"lexical": 0, "dense": 1})


def routed(stage: RoutedScore | Score, *classes: tuple[int, str], found: pl.DataFrame = FOUND) -> pl.DataFrame:
    told = frame("classes", {"question": [q for q, _ in classes], "class": [c for _, c in classes]})
    tables = world().updated({"hits": found, "classes": told})
    return stage.run(tables.only(stage.reads), Store())["ranking"]


def test_each_class_has_its_scorer_and_the_others_the_usual_one() -> None:
    words = hits((0, "dense:turn", 0, .9, 1), (0, "dense:turn", 1, .1, 2), (0, "lexical:turn", 1, 9.0, 1),
                 (0, "lexical:turn", 0, 1.0, 2), (1, "dense:turn", 6, .9, 1), (1, "dense:turn", 7, .1, 2),
                 (1, "lexical:turn", 7, 9.0, 1), (1, "lexical:turn", 6, 1.0, 2))
    stage = RoutedScore(routes={"factual": WORDS}, usual=MEANING)
    assert routed(stage, (0, "factual"), (1, "conceptual"), found=words)["unit"].to_list() == [1, 0, 6, 7]
    assert routed(stage, (0, "conceptual"), (1, "factual"), found=words)["unit"].to_list() == [0, 1, 7, 6]
    assert routed(stage, found=words)["unit"].to_list() == [0, 1, 6, 7]  # nobody classified


def test_the_first_class_of_a_question_decides_and_kin_stands_in() -> None:
    stage = RoutedScore(routes={"counting": Scorer(normaliser="none", threshold=100.0)}, usual=MEANING)
    assert routed(stage, (0, "factual"), (0, "counting"), (1, "factual")).height == 4
    assert routed(stage, (0, "counting"), (0, "factual"), (1, "factual"))["question"].to_list() == [1, 1]
    assert routed(stage, (0, "multi_session"), (1, "factual"))["question"].to_list() == [1, 1]


def test_one_scorer_for_all_is_rank_score() -> None:
    made = routed(RoutedScore(routes={"factual": MEANING}, usual=MEANING), (0, "factual"), (1, "update"))
    assert made.equals(routed(Score(normaliser="minmax", weights={"lexical": 0, "dense": 1})))


def test_wrong_names_are_told() -> None:
    with pytest.raises(ValidationError, match="did you mean 'factual'"):
        RoutedScore(routes={"factul": WORDS})
    with pytest.raises(ValidationError, match="at least 1"):
        RoutedScore(routes={})
    with pytest.raises(MemlabError, match="no signal is called 'late'"):  # though no question takes that route
        routed(RoutedScore(routes={"update": Scorer(weights={"late": 1})}), (0, "factual"))


EARLY, LATE = datetime(2023, 5, 1, 9), datetime(2023, 5, 2, 9)
SAID = ["aaaa", "a", "aaa", "aa", "aaaaaa"]


def five_memories(kinds: list[str] | None = None) -> Tables:
    """Corpus 0 has sessions 0 (two turns) and 1 (one turn, a day later); corpus 1 has one session of two turns."""
    places = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)]
    corpus, session, turn = ([p[i] for p in places] for i in range(3))
    said = [LATE if (c, s) == (0, 1) else EARLY for c, s, _ in places]
    texts = texts_frame([*SAID, "q"])
    return Tables(
        texts=texts,
        turns=frame("turns", {"corpus": corpus, "session": session, "turn": turn,
                              "text_id": [text_hash(w) for w in SAID]}),
        sessions=frame("sessions", {"corpus": [0, 0, 1], "session": [0, 1, 0], "said_on": [EARLY, LATE, EARLY]}),
        questions=frame("questions", {"question": [0, 1, 2], "corpus": [0, 0, 1], "text_id": [text_hash("q")] * 3,
                                      "asked_on": [EARLY.replace(hour=1), LATE, None]}),
        memories=frame("memories", {"memory": range(5), "corpus": corpus, "session": session, "said_on": said,
                                    "turns": [[t] for t in turn], "kind": kinds or ["turn"] * 5,
                                    "key_id": [text_hash(w) for w in SAID],
                                    "value_id": [text_hash(w) for w in SAID]}))


def units_of(tables: Tables, question: int) -> list[int]:
    return tables["ranking"].filter(pl.col("question") == question).sort("rank")["unit"].to_list()


@pytest.mark.parametrize("level", ["turn", "session", "memory"])
def test_random_orders_differ_by_seed_only_and_hold_all_that_a_question_may_see(level: Level) -> None:
    made = [RandomScore(level=level, seed=seed).run(five_memories(), Store()) for seed in (0, 0, *range(1, 9))]
    assert made[0]["ranking"].equals(made[1]["ranking"])
    assert len({tuple(units_of(one, 1)) for one in made}) > 1
    # question 0 was asked a day before the second session; question 2, without a day, sees its whole corpus
    seen = [[0], [0, 1], [2]] if level == "session" else [[0, 1], [0, 1, 2], [3, 4]]
    for one in made:
        assert [sorted(units_of(one, question)) for question in range(3)] == seen


def test_memories_of_several_kinds_have_no_common_ranking() -> None:
    with pytest.raises(MemlabError, match="kinds"):
        RandomScore(level="memory").run(five_memories(["turn"] * 4 + ["round"]), Store())
