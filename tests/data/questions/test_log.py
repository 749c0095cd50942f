"""A log for the page: neighbours, copies, and search over all turns."""

from __future__ import annotations

from typing import Any

from memlab.data.jsonl import SessionLine
from memlab.data.questions.log import Log, TurnPlace


def session(name: str, *turns: tuple[str, str], corpus: str = "ann", said_on: str | None = None) -> SessionLine:
    rows: list[dict[str, Any]] = [{"role": role, "text": text} for role, text in turns]
    return SessionLine.model_validate({"corpus": corpus, "session": name, "said_on": said_on, "turns": rows})


LOG = Log([
    session("s1", ("user", "My cat is called Tom."), ("assistant", "Lovely!"), said_on="2024-03-01T18:30"),
    session("s2", ("user", "We photographed the lighthouse."), ("user", "my cat is  called Tom."), ("user", "Yes.")),
    session("s3", ("assistant", "My cat is called Tom."), ("user", "Yes.")),
    session("s1", ("user", "My cat is called Tim."), ("user", "我在东京买了灯"), corpus="bob")])


def test_copies_are_what_the_same_person_says_in_the_same_corpus() -> None:
    assert LOG.copies(TurnPlace(1, 1)) == [TurnPlace(0, 0), TurnPlace(1, 1)]
    assert LOG.copies(TurnPlace(2, 0)) == [TurnPlace(2, 0)]
    assert LOG.copies(TurnPlace(1, 2)) == [TurnPlace(1, 2)]  # "Yes." says nothing by itself
    assert LOG.without_copies([TurnPlace(1, 1), TurnPlace(1, 0), TurnPlace(0, 0)]) == [TurnPlace(0, 0), TurnPlace(1, 0)]


def test_search_ranks_words_before_parts_of_words_in_one_corpus() -> None:
    assert LOG.search("ann", "cats", 10) == ([TurnPlace(0, 0), TurnPlace(2, 0)], 2)
    assert LOG.search("ann", "LIGHTH", 10) == ([TurnPlace(1, 0)], 1)
    assert LOG.search("ann", "photograph", 10)[0] == [TurnPlace(1, 0)]
    assert LOG.search("bob", "cat", 10) == ([TurnPlace(3, 0)], 1)
    assert LOG.search("bob", "东京", 10) == ([TurnPlace(3, 1)], 1)
    assert LOG.search("ann", "cat lighthouse", 1)[1] == 3
    for text in ("", "  ", "zzz", "nobody"):
        assert LOG.search("ann", text, 10) == ([], 0)
    assert LOG.search("nobody", "cat", 10) == ([], 0)
