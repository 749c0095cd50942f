from __future__ import annotations

import pytest

from memlab.pipeline.tables import Tables, frame
from memlab.stages.query.decompose import LLMDecompose, RuleDecompose
from memlab.stages.rank.score import Score
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.stages.query.worlds import asked, done, searched
from tests.stages.rank.rankings import hits, world

CHOICE = "Which did I plant first, the roses or the lilies?"
TALK = asked("Who is Ann?", CHOICE)


def test_parts_become_queries_that_weigh_no_more_than_the_question():
    after = done(RuleDecompose(), TALK)
    assert searched(after) == [(0, "original", "Who is Ann?", 1.0), (1, "original", CHOICE, 1.0),
                               (1, "sub", "the roses", .5), (1, "sub", "the lilies", .5)]
    assert after["queries"]["query"].to_list() == [0, 1, 2, 3]
    assert after["queries"].head(2).equals(TALK["queries"])
    assert [w for *_, w in searched(done(RuleDecompose(share=.4), TALK))] == [1, 1, .2, .2]


def test_the_control_repeats_the_question_where_rules_would_split():
    assert searched(done(RuleDecompose(repeat=True), TALK))[2:] == [(1, "sub", CHOICE, .5)] * 2


def test_what_the_question_alone_finds_first_stays_above_what_one_part_finds_first():
    """Weighted ranks by hand, k = 60: memory 0 is the question's best and each part's fifth; 1 the other way round."""
    queries = frame("queries", {"query": [0, 1, 2], "question": [0, 0, 0], "kind": ["original", "sub", "sub"],
                                "text_id": ["a", "b", "c"], "weight": [1.0, .5, .5]})
    found = hits((0, "x:turn", 0, .9, 1), (0, "x:turn", 1, .1, 5), (1, "x:turn", 1, .9, 1), (1, "x:turn", 0, .1, 5),
                 (2, "x:turn", 0, .1, 5), (2, "x:turn", 1, .1, 6))
    stage = Score(normaliser="none")
    ranking = stage.run(world().updated(Tables(hits=found, queries=queries)).only(stage.reads), Store())["ranking"]
    assert ranking["unit"].to_list() == [0, 1]
    assert ranking["score"].to_list() == [round(1 / 61 + .5 / 65 + .5 / 65, 6), round(1 / 65 + .5 / 61 + .5 / 66, 6)]


def llm(reply, **more):
    chat = ScriptedChat(reply)
    return LLMDecompose(chat=chat, **more), chat


def test_a_model_s_phrases_are_taken_when_there_are_several(tmp_path):
    phrases = '{"queries": ["roses\\u0007 planted", "lilies planted", "roses  planted", "a", "b", "c"]}'
    stage, chat = llm(lambda p: phrases if "roses" in p.messages[-1].content else '{"queries": ["Who is Ann?"]}')
    after = done(stage, TALK, Store(tmp_path))
    assert searched(after)[2:] == [(1, "sub", words, .25) for words in ("roses planted", "lilies planted", "a", "b")]
    assert len(chat.asked) == 2
    assert all(p.schema for p in chat.asked)


def test_a_reply_that_cannot_be_read_is_counted_and_changes_nothing(tmp_path):
    stage, _ = llm(lambda p: "the roses and the lilies")
    with pytest.warns(UserWarning, match="2 of 2 decompositions could not be read"):
        after = done(stage, TALK, Store(tmp_path))
    assert after.digest(TALK) == TALK.digest(TALK)
