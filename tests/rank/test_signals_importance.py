from __future__ import annotations

from memlab.rank.signals import Importance
from tests.rank.rankings import ranking
from tests.rank.signals.worlds import dated, values

TOLD = [.1, None, .9, None, None, None, None, None, .3, None, None, None]  # memories 0, 2 and 100


def test_the_most_important_memory_speaks_for_a_unit() -> None:
    table = ranking([.9, .8, .7, .6])
    assert values(Importance(), dated(table, importance=TOLD)) == [.3, .3, .9, None]
    assert values(Importance(), dated(table, "memory", importance=TOLD)) == [.1, None, .9, None]
    assert values(Importance(), dated(ranking([.9, .8, .7]), "session", importance=TOLD)) == [.3, .9, None]
