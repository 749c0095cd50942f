"""Later exports: what is new is added, and what questions cite stays where it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memlab.data.chats.folder import Changes, merge


def session(name: str, *texts: str, at: str | None = "2024-03-01T09:00", corpus: str = "c") -> dict[str, Any]:
    """Return a session in which user and assistant take turns."""
    turns = [{"role": "assistant" if n % 2 else "user", "text": text} for n, text in enumerate(texts)]
    return {"corpus": corpus, "session": name, "said_on": at, "turns": turns}


OLD = [session("Job", "I start.", "Good."), session("Cat", "Mio.", "Aw.", at="2024-03-02T09:00")]
SESSIONS = st.lists(st.builds(
    lambda name, words, at: session(name, *words, at=at), st.sampled_from(["Job", "Job (2)", "Cat"]),
    st.lists(st.sampled_from(["a", "b", "a\nb", "c"]), min_size=1, max_size=5),
    st.sampled_from([None, "2024-03-01T09:00", "2024-03-01T10:00", "2024-03-02T09:00"])), max_size=6).map(
        lambda lines: [{**line, "session": f"{line['session']} {n}"} for n, line in enumerate(lines)])


def texts(line: dict[str, Any]) -> list[str]:
    return [turn["text"] for turn in line["turns"]]


def test_new_sessions_and_turns_are_added() -> None:
    later = [session("Job", "I start.", "Good.", "I quit.", "Oh."), OLD[1], session("Bike", "A Kona.", "Nice.")]
    merged, changes = merge(OLD, later)
    assert merged == [later[0], OLD[1], later[2]]
    assert changes == Changes(new=1, went_on=1, turns=2, unchanged=1, absent=0, stored=3)
    assert merge(merged, later) == (merged, Changes(0, 0, 0, 3, 0, 3))
    assert merge(merged, OLD) == (merged, Changes(0, 0, 0, 2, 1, 3))


def test_a_turn_that_went_on_keeps_its_number() -> None:
    merged, changes = merge(OLD, [session("Job", "I start.", "Good.\nWhere?", "At Acme.")])
    assert texts(merged[0]) == ["I start.", "Good.\nWhere?", "At Acme."]
    assert changes.turns == 2
    assert merge(merged, OLD)[0] == merged


def test_other_sessions_stay_apart() -> None:
    alike = [session("Job", "I start.", "Bad."), session("Job", "I start.", "Good.", corpus="d"),
             session("Job", "Hi.", "Yes?", at="2024-03-01T18:00"), session("Job", "I start.", "Good.", at=None)]
    merged, changes = merge(OLD[:1] + [session("Job (2)", "x", at="2024-03-01T23:00")], alike[1:])
    assert [line["session"] for line in merged] == ["Job", "Job (2)", "Job (3)", "Job (4)", "Job (5)"]
    assert (changes.new, changes.absent) == (3, 2)
    assert merge([session("Hi", "Hi", "A", at=None)], [session("Hi", "Hi", "B", at=None)])[1].new == 1


def test_a_session_that_went_on_is_not_taken_for_the_branch_of_another() -> None:
    old = [session("Job", "I start.", "Good.")]
    branch = session("Branch", "I start.", "Great.", "Yes.")
    merged, _ = merge(old, [branch, session("Job", "I start.", "Good.", "At Acme.")])
    assert [(line["session"], texts(line)[-1]) for line in merged] == [("Job", "At Acme."), ("Branch", "Yes.")]


@given(SESSIONS, SESSIONS)
def test_whatever_comes_later_nothing_is_lost_or_moved(stored: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    merged, changes = merge(stored, new)
    for old, now in zip(stored, merged):
        assert old["session"] == now["session"]
        assert all(after == before or after.startswith(f"{before}\n") for before, after in zip(texts(old), texts(now)))
        assert len(now["turns"]) >= len(old["turns"])
    assert max(Counter(line["session"] for line in merged).values(), default=1) == 1
    assert changes.new + changes.went_on + changes.unchanged == len(new)
    assert changes.stored == len(merged) == len(stored) + changes.new
    held = [text for line in merged for text in texts(line)]
    assert all(any(text == one or one.startswith(f"{text}\n") for one in held) for line in new for text in texts(line))
    assert merge(merged, merged) == (merged, Changes(unchanged=len(merged), stored=len(merged)))
