from __future__ import annotations

from datetime import timedelta

import pytest

from memlab.stages.write.relations import Versions
from tests.stages.write.relations.worlds import DAY, Angles, done, edges, told


def versioned(store, *rows, degrees=None, **settings):
    return done(Versions(embedder=Angles(degrees or {}), **settings), told(*rows), store)


def ops(out):
    kinds = {kind: set(out["edges"].filter(kind=kind)["source"]) for kind in ("SUPERSEDES", "ELABORATES")}
    return ["INVALIDATE" if m in kinds["SUPERSEDES"] else "MERGE" if m in kinds["ELABORATES"] else "ADD"
            for m in out["memories"]["memory"]]


UPDATES = [
    ("My boss is Ann.", "My new boss is Bob."), ("My yoga class is on Mondays.", "My yoga class has moved to Fridays."),
    ("My passport is in the blue tin.", "I moved my passport to the top drawer."),
    ("I live in Cork.", "I moved to Porto."),
    ("I work at Acme.", "I now work for Initech."), ("I don't like jazz.", "I like jazz."),
    ("I have read 10 novels so far.", "I have read 12 novels so far this year!"),
    ("I pay 900 dollars of rent.", "My rent is 950 dollars now."),
    ("My best time over 5 km is 28:07.", "My best time over 5 km is 26:18."),
    ("My sister lives in Cork.", "My sister moved to Porto."),
]


@pytest.mark.parametrize(("old", "new"), UPDATES)
def test_an_update_ends_what_it_replaces(store, old, new):
    out = versioned(store, (0, 0, old), (1, 30, new))
    assert ops(out) == ["ADD", "INVALIDATE"]
    assert out["memories"]["valid_to"].to_list() == [DAY + timedelta(days=30), None]
    assert edges(out) == [(1, 0, "SUPERSEDES", pytest.approx(0.85))]


@pytest.mark.parametrize(("old", "new"), [
    ("My day is good.", "My day is long."), ("My boss is Ann.", "My old boss is Bob."),
    ("My boss is Ann.", "The boss of my brother is Bob."), ("I bought 3 novels.", "I bought 5 novels."),
    ("I spent $20 on tea.", "I spent $30 on tea."), ("My boss is Ann.", "My dentist is Bob."),
    ("I have read 10 novels so far.", "I have 2 cats now."), ("My boss is Ann.", "Is my boss Bob now?"),
    ("assistant: My boss is Ann.", "user: My boss is Bob."), ("Mein Chef ist Ann.", "Mein Chef ist jetzt Bob."),
    ("My boss is Ann.", "My boss is Ann Miller."), ("I work out 3 times a week now.", "I swim 4 times a week now."),
    ("I have completed 3 online courses on Coursera.", "I have completed 2 online courses on edX."),
    ("I now lift 5 pounds more, then 10 pounds.", "I now lift 10 pounds more."),
    ("I now get up at 6:30 am.", "I now go to bed at 10:30 pm."),
    ("My best time over 5 km is 28:07.", "Before I forget, the best time of my aunt over 5 km is 22:01."),
])
def test_what_is_no_update(store, old, new):
    out = versioned(store, (0, 0, old), (1, 30, new))
    assert ops(out) == ["ADD", "ADD"]
    assert out["memories"]["valid_to"].to_list() == [None, None]


def test_history_stays_and_each_is_ended_once_by_the_first(store):
    out = versioned(store, (0, 0, "I live in Cork."), (1, 10, "I moved to Porto."), (2, 20, "I moved to Cork."),
                    (3, 30, "I moved to Ghent."))
    days = [DAY + timedelta(days=d) for d in (10, 20, 30)]
    assert out["memories"]["valid_to"].to_list() == [*days, None]
    assert out["memories"]["valid_from"].to_list() == out["memories"]["said_on"].to_list()
    assert [(s, t) for s, t, *_ in edges(out)] == [(1, 0), (2, 1), (3, 2)]


def test_the_same_again_merges_with_the_nearest_still_valid(store):
    a, b, other = "We repaired the old boat at the lake.", "We repaired the old boat at the lake again.", "A lake."
    angles = {a: 0, b: 10, other: 0}
    out = versioned(store, (0, 0, a), (1, 1, b), (2, 2, other), degrees=angles)
    assert ops(out) == ["ADD", "MERGE", "ADD"]  # near, but the third shares too few words
    assert edges(out) == [(1, 0, "ELABORATES", pytest.approx(0.984808, abs=1e-5))]
    assert ops(versioned(store, (0, 0, a), (1, 1, b), degrees={a: 0, b: 30})) == ["ADD", "ADD"]  # cosine .87


def test_other_numbers_are_not_the_same(store):
    a, b = "The train leaves at 8:15 from platform two.", "The train leaves at 9:15 from platform two."
    assert ops(versioned(store, (0, 0, a), (1, 1, b), degrees={a: 0, b: 0})) == ["ADD", "ADD"]


def test_nothing_merges_into_what_has_ended(store):
    old, new = "I live in Cork.", "I moved to Porto."
    out = versioned(store, (0, 0, old), (1, 1, new), (2, 2, "We live in Cork"), degrees={old: 0, "We live in Cork": 0})
    assert ops(out) == ["ADD", "INVALIDATE", "INVALIDATE"]
    assert edges(out, "ELABORATES") == []
    old, again = "I live in Cork near boats.", "Cork, boats: near life, to live."
    out = versioned(store, (0, 0, old), (1, 1, new), (2, 2, again), degrees={old: 0, again: 0}, same_terms=0.5)
    assert ops(out) == ["ADD", "INVALIDATE", "ADD"]
    valid = versioned(store, (0, 0, old), (2, 2, again), degrees={old: 0, again: 0}, same_terms=0.5)
    assert ops(valid) == ["ADD", "MERGE"]


def test_what_ends_another_does_not_merge_as_well(store):
    rest = "Boats, lakes, tea and sails."
    rows = ((0, 0, rest), (1, 1, "I live in Cork."), (2, 2, f"{rest} I moved to Porto."))
    out = versioned(store, *rows, degrees={rest: 0, rows[2][2]: 0}, same_terms=0.5)
    assert [(s, t, kind) for s, t, kind, _ in edges(out)] == [(2, 1, "SUPERSEDES")]
    assert ops(versioned(store, rows[0], rows[2], degrees={rest: 0, rows[2][2]: 0}, same_terms=0.5)) == ["ADD", "MERGE"]


def test_a_long_memory_is_never_ended(store):
    long = "My boss is Ann. " + "tea " * 120
    assert ops(versioned(store, (0, 0, long), (1, 1, "My new boss is Bob."))) == ["ADD", "ADD"]
    assert ops(versioned(store, (0, 0, long), (1, 1, "My new boss is Bob."), max_words=200)) == ["ADD", "INVALIDATE"]
