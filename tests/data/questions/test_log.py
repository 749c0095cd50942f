"""A log for the page: neighbours, copies, and search over all turns."""

from __future__ import annotations

from typing import Any

from memlab.data.jsonl import SessionLine
from memlab.data.questions.log import Log, TurnPlace


def session(name: str, *turns: tuple[str, str], corpus: str = "ann") -> SessionLine:
    rows: list[dict[str, Any]] = [{"role": role, "text": text} for role, text in turns]
    return SessionLine.model_validate({"corpus": corpus, "session": name, "said_on": None, "turns": rows})


LOG = Log([
    session("s1", ("user", "My cat is called Tom."), ("assistant", "Lovely!")),
    session("s2", ("user", "We photographed the lighthouse."), ("user", "my cat is  called Tom."), ("user", "Yes.")),
    session("s3", ("assistant", "My cat is called Tom."), ("user", "Yes.")),
    session("s1", ("user", "My cat is called Tim."), ("user", "我在东京买了灯"), corpus="bob")])


def test_copies_are_what_the_same_person_says_in_the_same_corpus() -> None:
    assert LOG.copies(TurnPlace(1, 1)) == [TurnPlace(0, 0), TurnPlace(1, 1)]
    assert LOG.copies(TurnPlace(2, 0)) == [TurnPlace(2, 0)]
    assert LOG.copies(TurnPlace(1, 2)) == [TurnPlace(1, 2)]  # "Yes." says nothing by itself
    assert LOG.without_copies([TurnPlace(1, 1), TurnPlace(1, 0), TurnPlace(0, 0)]) == [TurnPlace(0, 0), TurnPlace(1, 0)]


def test_search_ranks_words_before_parts_of_words_in_one_corpus() -> None:
    for corpus, text, found in (("ann", "cats", [(0, 0), (2, 0)]), ("ann", "LIGHTH", [(1, 0)]),
                                ("bob", "cat", [(3, 0)]), ("bob", "东京", [(3, 1)])):
        assert LOG.search(corpus, text, 10) == (found, len(found))
    assert LOG.search("ann", "cat lighthouse", 1)[1] == 3
    for corpus, text in (("ann", "  "), ("ann", "zzz"), ("nobody", "cat")):
        assert LOG.search(corpus, text, 10) == ([], 0)
