"""Pipelines and arms for scripts: by the words of a command line, or made of stages."""

from __future__ import annotations

from pathlib import Path

from memlab.data.dataset import Dataset
from memlab.errors import Faults
from memlab.harness.arm import Arm
from memlab.harness.sweep import OF_RUNS, read
from memlab.pipeline import Pipeline
from memlab.store import Store


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


def run_pipeline(pipeline: Pipeline, dataset: Dataset, name: str, *, out: str | Path = "runs",
                 experiment: str = "python", store: Store | None = None, seed: int = 0) -> Path:
    """Run a pipeline on a data set as an arm; return its run folder, ``OUT/EXPERIMENT/DATA/NAME-HASH``.

    A finished arm is not run again. An adaptive selection is followed by its token-matched baseline, ``NAME.twin``.

    Args:
        pipeline: Stages, such as ``Pipeline(select=Fixed(k=5))`` or ``preset("system=best")``.
        dataset: A data set, such as ``Synthetic(lives=4)``.
        name: Name of the arm in reports and comparisons.
        out: Folder of all runs.
        experiment: Folder below it; arms of one experiment are compared in one report.
        store: Cache of vectors, scores and replies; None is ``$MEMLAB_HOME/store``.
        seed: Seed of the token-matched baseline.

    Raises:
        MemlabError: The data cannot be read, or a stage fails.
    """
    return Arm(name, experiment, pipeline, dataset, Path(out), seed, config="").run(store or Store())
