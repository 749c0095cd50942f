"""Questions by rules, and pools of several systems."""

from __future__ import annotations

import json

from memlab.data.jsonl import SessionLine
from memlab.data.questions.log import TurnPlace
from memlab.data.questions.pool import Asked, pool
from memlab.data.questions.propose import ProposedQuestion, propose
from memlab.store import Store
from tests.small import lexical

LINES = [
    {"corpus": "ann", "session": "s1", "said_on": "2024-03-01", "turns": [
        {"role": "user", "text": "My cat is called Tom </script><b>&"},
        {"role": "assistant", "text": "I live in a cat."}]},
    {"corpus": "ann", "session": "s2", "said_on": "2024-03-02", "turns": [
        {"role": "user", "text": "My cat is called Tom, as I said."},
        {"role": "user", "text": "I prefer\u2028tea over coffee."},
        {"role": "user", "text": "It rains.", "speaker": "Bob"}]},
]
SESSIONS = [SessionLine.model_validate_json(json.dumps(line)) for line in LINES]
CAT = ProposedQuestion("ann", "What is my cat called?", "s1", 0, "Tom", "name")
TEA = ProposedQuestion("ann", "What do I prefer to coffee?", "s2", 1, "tea", "preference")


def test_each_question_is_proposed_once_from_what_users_say() -> None:
    assert propose(SESSIONS) == [CAT, TEA]
    assert propose(SESSIONS, limit=1) == [CAT]


def test_a_pool_holds_the_first_turns_of_each_system_in_the_order_of_the_log() -> None:
    cat, tea = Asked("ann", CAT.text), Asked("ann", TEA.text)
    pools = pool(SESSIONS, [cat, tea], {"a": lexical(), "b": lexical()}, Store(), depth=1)
    assert pools[0] in ([TurnPlace(0, 0)], [TurnPlace(1, 0)])
    assert pools[1] == [TurnPlace(1, 1)]
    whole = pool(SESSIONS, [cat], {"a": lexical()}, Store(), depth=10)[0]
    assert whole == [TurnPlace(0, 0), TurnPlace(0, 1), TurnPlace(1, 0), TurnPlace(1, 1), TurnPlace(1, 2)]


def test_the_first_questions_are_of_many_kinds_and_sessions() -> None:
    texts = [f"I bought a new {thing} in {month}." for thing in ("bike", "lamp", "phone", "sofa") for month in
             ("January", "February", "March")]
    sessions = [session("a", *texts), session("b", "My rent is $900."), session("c", "My sister Emma got married."),
                session("d", "I switched from coffee to tea.")]
    first = propose(sessions, limit=6)
    assert {question.session for question in first} == {"a", "b", "c", "d"}
    assert len({question.kind for question in first}) >= 4
    everything = propose(sessions, limit=None)
    assert everything[:6] == first
    assert len({question.text for question in everything}) == len(everything) == 7
    assert everything == propose(sessions, limit=None)


def test_a_question_names_its_corpus_turn_and_answer_and_is_asked_once_in_each_corpus() -> None:
    sessions = [session("a", "Hello.", "My rent is $900."), session("b", "My rent is $950."),
                session("c", "My rent is $100.", corpus="bob")]
    assert propose(sessions) == [ProposedQuestion("ann", "How much is my rent?", "b", 0, "$950", "amount"),
                                 ProposedQuestion("bob", "How much is my rent?", "c", 0, "$100", "amount")]


def session(name: str, *texts: str, corpus: str = "ann", said_on: str | None = None, speaker: str | None = None
            ) -> SessionLine:
    turns = [{"role": "user", "text": text, "speaker": speaker} for text in texts]
    return SessionLine.model_validate({"corpus": corpus, "session": name, "said_on": said_on, "turns": turns})


def test_what_changed_is_asked_about_as_it_was_said_last_and_what_is_repeated_as_first() -> None:
    def said(*texts: str) -> list[SessionLine]:  # the file is not in the order of time
        return [session(f"s{day}", text, said_on=f"2024-03-0{day}", speaker="Ana")
                for day, text in reversed(list(enumerate(texts, start=1)))]

    launch = "When is the launch?"
    assert propose(said("The launch is on 12 April.", "The launch moved to 12 May.", "The launch is on 12 May.")) == [
        ProposedQuestion("ann", launch, "s2", 0, "12 May", "deadline")]
    managers = propose(said("My manager is Eva.", "My manager is Tomasz now."))
    assert {one.answer for one in managers} == {"Tomasz"}


def test_what_several_people_repeat_or_one_says_again_and_again_gives_no_question() -> None:
    def asked(*turns: tuple[str | None, str]) -> list[str]:
        rows = [{"role": "user", "speaker": speaker, "text": text} for speaker, text in turns]
        return [one.text for one in propose([SessionLine.model_validate(
            {"corpus": "ann", "session": "s", "said_on": None, "turns": rows})])]

    assert asked(("Ana", "Our mill is called Bruno."), ("Bob", "Ha! Our mill is called Bruno.")) == []
    orders = [("Orders", f"New order #{n}. The pick-up desk is in Rome. The parcel code is {n}.") for n in range(3)]
    assert asked(*orders) == []
    assert asked(*orders[:1]) == ["Where is the pick-up desk?", "What is the parcel code?"]
    assert asked(*[(None, "My cat is called Tom.")] * 3) == ["What is my cat called?"]
