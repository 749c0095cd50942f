"""Pipelines by the words of a command line, for scripts."""

from __future__ import annotations

from memlab.errors import Faults
from memlab.harness.sweep import OF_RUNS, read
from memlab.pipeline import Pipeline


def preset(*words: str) -> Pipeline:
    """Return the pipeline that words of ``memlab run`` describe; raise Faults with all that is wrong with them.

    >>> preset("system=plain", "rank.select.k=5").select.k
    5
    """
    if wrong := [repr(word) for word in words if not isinstance(word, str)]:
        raise Faults([f"expected words such as 'rank.select.k=5', given {', '.join(wrong)}"])
    arms = read(words, without=(*OF_RUNS, "data", "store")).arms
    if len(arms) != 1:
        raise Faults([f"one configuration is needed, these words describe {len(arms)}; give one value per slot"])
    return arms[0].pipeline
