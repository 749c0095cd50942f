"""The names of classes: one vocabulary for all classifiers, so that what differs by class works with any of them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from memlab.errors import MemlabError, did_you_mean

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

FALLBACK = {"multi_session": "counting"}
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


OF_TYPE: dict[str, str] = {
    # LongMemEval, and memlab's synthetic lives
    "single-session-user": "factual",
    "single-session-assistant": "assistant",
    "single-session-preference": "preference",
    "multi-session": "multi_session",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    # LoCoMo; "adversarial" says that there is no answer, and nothing of what is asked for: it has no class
    "single-hop": "factual",
    "multi-hop": "multi_session",
    "temporal": "temporal",
    "open-domain": "conceptual",  # what follows from what is known of a person
}
"""Benchmark type -> class."""

AS_GOOD: dict[str, tuple[str, ...]] = {"multi_session": ("counting",), "factual": ("general",),
                                       "conceptual": ("general",)}
"""Classes that count as right beside the one that a type stands for: another name for it, or no opinion."""


def fitting(category: str) -> tuple[str, ...]:
    """Return the classes that are right for a benchmark's type; none where the type is no kind of question.

    >>> fitting("multi-hop"), fitting("adversarial")
    (('multi_session', 'counting'), ())
    """
    name = OF_TYPE.get(category)
    return () if name is None else (name, *AS_GOOD.get(name, ()))


def known_classes(names: Mapping[str, str]) -> None:
    """Raise MemlabError for a class that is not in the vocabulary."""
    for category, name in names.items():
        if name not in VOCABULARY:
            raise MemlabError(f"'{name}', given for '{category}', is no class", fix=did_you_mean(name, VOCABULARY))
