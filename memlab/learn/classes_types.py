"""The benchmarks' own question types in the vocabulary of classes (``memlab.query.class_names``)."""

from __future__ import annotations

from collections.abc import Mapping

from memlab.errors import MemlabError, did_you_mean
from memlab.query.class_names import VOCABULARY

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
