"""The classes of questions: one vocabulary for all classifiers, and the class of each benchmark type."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from memlab.support.errors import MemlabError, did_you_mean

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
"""Every class, and the kind of answer that its questions ask for; no classifier uses all of them."""

FALLBACK = {"multi_session": "counting"}
"""The class whose setting a technique uses if it has none for a class.

Classifiers with ``multi_session`` have no ``counting``: most of their questions about several sessions are counts, and
settings that help a count (many units, each item written down) help the others too.
"""

OF_TYPE: dict[str, str] = {
    # LongMemEval, and memlab's synthetic lives
    "single-session-user": "factual",
    "single-session-assistant": "assistant",
    "single-session-preference": "preference",
    "multi-session": "multi_session",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    # LoCoMo; "adversarial" has no class: it only states that there is no answer
    "single-hop": "factual",
    "multi-hop": "multi_session",
    "temporal": "temporal",
    "open-domain": "conceptual",  # conclusions from what is known of a person
    # REALTALK has multi-hop and temporal as well
    "commonsense": "conceptual",
    # BEAM; its other abilities (abstention, instructions, contradictions, summaries) have no class
    "information_extraction": "factual",
    "multi_session_reasoning": "multi_session",
    "temporal_reasoning": "temporal",
    "event_ordering": "temporal",
    "knowledge_update": "update",
    "preference_following": "preference",
    # RealMem has temporal-reasoning as well; "dynamic-incremental", the next step of a project, has no class
    "dynamic-updating": "update",
    "implicit-preference": "preference",
}
"""Benchmark type -> class."""

def first_of(classes: pl.DataFrame) -> dict[int, str]:
    """Return question -> class: the first row of each question in ``classes``.

    >>> first_of(pl.DataFrame({"question": [3, 3, 1], "class": ["update", "temporal", "factual"]}))
    {3: 'update', 1: 'factual'}
    """
    return dict(classes.unique("question", keep="first", maintain_order=True).select("question", "class").iter_rows())


def check_classes(names: Mapping[str, str]) -> None:
    """Raise MemlabError for a class that is not in the vocabulary."""
    for category, name in names.items():
        if name not in VOCABULARY:
            raise MemlabError(f"'{name}', given for '{category}', is no class", fix=did_you_mean(name, VOCABULARY))
