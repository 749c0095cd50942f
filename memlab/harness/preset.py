"""Pipelines by the words of a command line, for scripts."""

from __future__ import annotations

from memlab.errors import Faults
from memlab.harness.sweep import read
from memlab.pipeline import Pipeline


def preset(*words: str) -> Pipeline:
    """Return the pipeline that words of ``memlab run`` describe; raise Faults with all that is wrong with them.

    >>> preset("system=plain", "rank.select.k=5").select.k
    5
    """
    arms = read(list(words)).arms
    if len(arms) != 1:
        raise Faults([f"one configuration is needed, these words describe {len(arms)}; give one value per slot"])
    return arms[0].pipeline
