from __future__ import annotations

import pytest
from pydantic import ValidationError

from memlab.rank.signals.source import Source
from tests.rank.signals.worlds import dated, order, values

WRITTEN = [*["conversation"] * 4, "document", "user", *["conversation"] * 6]


def test_documents_come_before_talk() -> None:
    assert values(Source(), dated(source=WRITTEN)) == [0, 0, 0, 0, 1, 0]
    graded = Source(authority={"document": .9, "user": .5, "conversation": .1})
    assert values(graded, dated(source=WRITTEN)) == [.1, .1, .1, .1, .9, .5]


def test_it_changes_a_ranking() -> None:
    assert order(dated(source=WRITTEN), signals=[Source()], weights={"source": 1}) == [4, 0, 1, 2, 3, 5]


def test_authority_is_a_share() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Source(authority={"document": 2.0})
