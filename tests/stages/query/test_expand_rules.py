from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.transcript import NOTE
from memlab.stages.query import expand_rules
from memlab.stages.query.decompose import RuleDecompose
from memlab.stages.query.expand_llm import HyDE, LLMExpand, RuleHyDE
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.fences import inside
from tests.stages.query.worlds import asked, done, searched

CAR = "Where did I buy my car?"
ANN = "Is Ann tall?"
TALK = asked(ANN, CAR)
SAID = json.dumps({"queries": ["Where did I get my car?", CAR, "the dealer  of\u0007 my car", "my car from", "more"]})


def stages() -> list:
    """Every technique, with a model that says something about cars alone."""
    def both(prompt):
        about_cars = "car" in prompt.messages[-1].content
        return (SAID if prompt.schema else "I bought it in Ulm.") if about_cars else ""

    chat = ScriptedChat(both)
    rule = expand_rules.RuleExpand
    return [rule(), rule(statement=True, most=3, weight=1.0), rule(inject=True), RuleHyDE(),
            LLMExpand(chat=chat), LLMExpand(chat=chat, mode="fusion", synonyms=2, weight=1.0), HyDE(chat=chat)]


@pytest.mark.filterwarnings("ignore:1 of 2")
@pytest.mark.parametrize("stage", stages(), ids=lambda s: type(s).__name__)
def test_the_question_stays_first_and_unchanged_and_nothing_weighs_more(stage, tmp_path) -> None:
    after = done(stage, TALK, Store(tmp_path))
    queries = after["queries"]
    assert queries.head(2).equals(TALK["queries"])
    assert queries["query"].is_unique().all()
    added = queries.slice(2)
    assert added.filter(question=1).height >= 1
    assert (added["weight"] <= 1.0).all()
    assert "original" not in added["kind"].to_list()
    words = [text.casefold() for q, _, text, _ in searched(after) if q == 1]
    assert len(set(words)) == len(words)  # neither the question again nor a wording twice
    assert set(dict(TALK["texts"].iter_rows()).items()) <= set(dict(after["texts"].iter_rows()).items())


def test_rewrites_become_queries() -> None:
    assert searched(done(expand_rules.RuleExpand(weight=.4), TALK))[2:] == [
        (1, "wording", f"Where did I purchase my {car}?", .4) for car in ("vehicle", "automobile")]
    fused = searched(done(expand_rules.RuleExpand(statement=True, most=3, weight=1.0), TALK))
    assert fused[2:] == [
        (1, "wording", "I bought my car", 1.0), (1, "wording", "Where did I purchase my vehicle?", 1.0),
        (1, "wording", "Where did I purchase my automobile?", 1.0)]
    assert [text for *_, text, _ in searched(done(expand_rules.RuleExpand(inject=True), TALK))][2:] == [
        f"{CAR} purchase vehicle automobile"]


def test_names_and_titles_keep_their_words() -> None:
    assert expand_rules.rewrites("Did Doctor Brown read 'My doctor and the car' before?", 3) == []
    rewritten = expand_rules.rewrites("Did Car-Mart sell my ex-wife's car?", 1)
    assert rewritten == ["Did Car-Mart sell my ex-wife's vehicle?"]


@pytest.mark.parametrize(("question", "phrases"), [
    ("how long is my commute", ["duration of commute", "travel time to work"]),
    ("How long does my daily commute to work take?", ["duration of daily commute to work", "travel time to work"]),
    ("How long does it take me to get to work?", ["duration of commute", "travel time to work"]),
    ("How long was the flight to Tokyo?", ["duration of flight to Tokyo", "flight time"]),
    ("How long is my thesis?", ["duration of thesis", "length of thesis"]),
    ("How old is my cat?", ["age of cat"]), ("How far is the lake?", ["distance to lake"]),
    ("How much did my tent cost?", ["price of tent", "cost of tent"]),
    ("How much did I pay for the tent?", ["price of tent", "cost of tent"]),
    ("How much does Miso weigh?", ["weight of Miso"]), ("What is my cat called?", ["name of cat"]),
    ("When was Ann born?", ["birthday of Ann", "date of birth of Ann"]),
    ("Where do I live?", ["my home address", "place of residence"]),
    ("Who do I work for?", ["my employer", "place of work"]),
    ("How long have I known Ann?", []), ("Why is my commute long?", []), ("How many cats do I have?", []), ("", []),
])
def test_a_common_form_of_question_has_its_noun_phrases(question: str, phrases: list[str]) -> None:
    assert expand_rules.phrasings(question) == phrases
    assert expand_rules.rewrites(question, 2)[:len(phrases)] == phrases
    assert expand_rules.rewrites(question, 1)[:1] == (phrases[:1] or expand_rules.rewrites(question, 1))


@pytest.mark.parametrize(("question", "added"), [
    ("DB connection", "database link"), ("Where is the db config?", "database configuration"),
    ("Which database do I use?", "DB"), ("How do I reset my creds?", "credentials"),
    ("Where are the API docs?", "programming interface documentation"), ("When is my appt?", "appointment"),
    ("Where is DBeaver?", ""), ("Who is Doc Brown?", ""),
])
def test_abbreviations_are_written_out(question: str, added: str) -> None:
    assert expand_rules.inject_synonyms(question) == f"{question} {added}".strip()
    written = done(expand_rules.RuleExpand(inject=True, most=1, weight=1.0), asked(question))
    assert [text for *_, text, _ in searched(written)][1:] == ([f"{question} {added}"] if added else [])


def test_sub_queries_are_not_expanded_and_share_no_weight() -> None:
    split = done(RuleDecompose(), asked("Which did I buy first, the car or the bike?"))
    after = searched(done(expand_rules.RuleExpand(most=1), split))
    assert [kind for _, kind, *_ in after] == ["original", "sub", "sub", "wording"]
    assert after[-1][2:] == ("Which did I purchase first, the vehicle or the bicycle?", .5)


@given(st.text(max_size=60), st.lists(st.sampled_from(sorted(expand_rules.SYNONYMS)), max_size=6), st.integers(1, 4))
def test_any_words_give_distinct_rewrites_or_none(text: str, words: list[str], most: int) -> None:
    question = f"{text} {' '.join(words)}"
    found = expand_rules.rewrites(question, most)
    assert len(found) == len(set(found)) <= most
    assert question not in found
    assert expand_rules.inject_synonyms(question).startswith(question)
    assert isinstance(expand_rules.statement(question), str)
    assert len(expand_rules.distinct(question, found, most)) <= most


@pytest.mark.parametrize(("question", "expected"), [
    ("When did I go to the dentist?", "I went to the dentist"),
    ("How many plants did my sister buy in May?", "my sister bought plants in May"),
    ("What kind of tea does Ann drink?", "Ann drink tea"),
    ("Which city will we visit next?", "we will visit next city"),
    ("How old is my dog?", "my dog is"),
    ("What was the name of my first boss?", "the name of my first boss was"),
    ("Did Ann study law?", "Ann studied law"),
    ("Recommend a film.", "Recommend a film."),
    ("", ""),
])
def test_a_question_becomes_the_statement_that_would_answer_it(question: str, expected: str) -> None:
    assert expand_rules.statement(question) == expected


def test_verbs_in_the_past() -> None:
    assert [expand_rules.past(v) for v in ("go", "plan", "like", "carry", "play", "visit")] == [
        "went", "planned", "liked", "carried", "played", "visited"]


def test_a_model_s_wordings_are_cleaned_and_counted_out(tmp_path) -> None:
    chat = ScriptedChat(lambda p: SAID if "car" in p.messages[-1].content else '{"queries": []}')
    after = done(LLMExpand(chat=chat, most=3, synonyms=1), TALK, Store(tmp_path))
    assert searched(after)[2:] == [(1, "wording", text, .5) for text in (
        "Where did I purchase my vehicle?", "Where did I get my car?", "the dealer of my car", "my car from")]
    assert len(chat.asked) == 2
    assert all(p.schema and "3" in p.messages[0].content and '{"queries"' in p.messages[0].content for p in chat.asked)


@pytest.mark.parametrize("reply", ["Where did I get it?", '{"queries": [1]}'])
def test_a_reply_that_cannot_be_read_is_counted_and_changes_nothing(tmp_path, reply: str) -> None:
    with pytest.warns(UserWarning, match="2 of 2 rewordings could not be read"):
        after = done(LLMExpand(chat=ScriptedChat(lambda p: reply)), TALK, Store(tmp_path))
    assert after.digest(TALK) == TALK.digest(TALK)


def test_hyde_adds_a_passage_of_its_own_kind(tmp_path) -> None:
    chat = ScriptedChat(lambda p: "I bought it\n in Ulm. " if "car" in p.messages[-1].content else " \n")
    with pytest.warns(UserWarning, match="1 of 2 passages are empty"):
        after = done(HyDE(chat=chat, weight=.7), TALK, Store(tmp_path))
    assert searched(after)[2:] == [(1, "hyde", "I bought it in Ulm.", .7)]
    assert all(p.schema is None for p in chat.asked)
    assert searched(done(RuleHyDE(), TALK))[-1] == (1, "hyde", "I bought my car", 1.0)


def test_hyde_is_told_neither_the_day_nor_an_id(tmp_path) -> None:
    chat = ScriptedChat(lambda p: "x")
    done(HyDE(chat=chat), TALK, Store(tmp_path))
    assert {inside(p.messages[-1].content, "QUESTION") for p in chat.asked} == {ANN, CAR}
    assert all(p.messages[0].content.endswith(NOTE) for p in chat.asked)
    assert not any("2023" in m.content for p in chat.asked for m in p.messages)
