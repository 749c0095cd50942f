"""The names of classes: one vocabulary for all classifiers, so that what differs by class works with any of them."""

from __future__ import annotations

import polars as pl

VOCABULARY: dict[str, str] = {
    "counting": "a number, a sum or a list, gathered from many places",
    "multi_session": "put together from several places, counts among them",
    "temporal": "when, in what order, how long",
    "preference": "advice that should fit the person",
    "assistant": "what the assistant said",
    "update": "the present state of what changes",
    "factual": "one fact, told in one place",
    "general": "none of the others",
    "conceptual": "why, what for, how things hang together",
    "procedural": "how something is done",
}
"""Every class and what a question of it asks for; no classifier knows all of them."""

KIN = {"multi_session": "counting"}
"""A class that is treated as another where a technique has no setting of its own for it.

The classifiers that know ``multi_session`` know no ``counting``: their questions over several sessions are counts for
the most part, and what helps a count (many units, each item written down) helps the others too.
"""


def first_of(classes: pl.DataFrame) -> dict[int, str]:
    """Return question -> class: the first row of each question in ``classes``.

    >>> first_of(pl.DataFrame({"question": [3, 3, 1], "class": ["update", "temporal", "factual"]}))
    {3: 'update', 1: 'factual'}
    """
    return dict(classes.unique("question", keep="first", maintain_order=True).select("question", "class").iter_rows())
