"""One update merged from several trained updates of an encoder: ``memlab experiment encoder_training merge ...``.

    memlab experiment encoder_training merge out_model=DIR \\
      'updates={a/update.safetensors: 0.6, b/update.safetensors: 0.6}'

The change of each weight is the sum of the updates' changes times their factors, cut to the rank (Ilharco et al.,
"Editing Models with Task Arithmetic", ICLR 2023). So one encoder has what several trainings on different data learned,
at the size and cost of one. DIR holds the update alone (``embedder.adapter=DIR/update.safetensors``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.learn.cross_fit_rerank import FILE
from memlab.learn.recipe import finished_record, sources_of, train_command
from memlab.models.local import adapter
from memlab.pipeline.stage import LocalPath, spec_digest, stage
from memlab.support.errors import Faults, MemlabError
from memlab.support.files import atomic_dir, write_json


@stage
class MergeRecipe:
    """Settings of a merged update.

    updates: files of ``memlab train encoder`` with one base, and the factor of each. out_model: folder of the merged
    update. rank: of its matrices.
    """

    updates: Annotated[dict[LocalPath, Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1)]
    out_model: LocalPath
    rank: Annotated[int, Field(ge=1)] = 32


def merge(recipe: MergeRecipe) -> dict[str, Any]:
    """Write the merged update and return its record; raise MemlabError for updates that do not fit together."""
    changes: dict[str, NDArray[Any]] = {}
    merged, sources, bases = [], [], set()
    for file, factor in recipe.updates.items():
        card, tensors = adapter.read_update(file)
        if adapter.PROJECTION in tensors:
            raise MemlabError("maps token vectors to fewer numbers, and maps cannot be added", where=str(file),
                              fix="an update that was trained without dimensions")
        bases.add(card.base)
        if len(bases) > 1:
            raise MemlabError("was trained from other weights than the update before it", where=str(file),
                              fix="merge updates of one base")
        merged.append({"update": card.digest, "factor": factor})
        sources += sources_of(file)
        for name in adapter.changed_weights(tensors):
            change = factor * adapter.change_of(tensors, name, np.float64)
            changes[name] = changes[name] + change if name in changes else change
    mark = spec_digest({"merged": merged, "rank": recipe.rank})
    if finished := finished_record(recipe.out_model, mark):
        return finished
    before = {name: np.zeros_like(change) for name, change in changes.items()}
    update = adapter.low_rank(before, changes, recipe.rank, "smaller factors")
    with atomic_dir(recipe.out_model) as temporary:
        digest = adapter.write_update(temporary / adapter.UPDATE, update,
                                      {"base": bases.pop(), "rank": recipe.rank, "dimensions": None})
        record = {"format": "memlab-merged-1", "mark": mark, "recipe": {"rank": recipe.rank}, "sources": sources,
                  "merged": merged, "update": digest}
        write_json(temporary / FILE, record)
    return record


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit status."""
    return train_command(MergeRecipe, __doc__ or "", _run, argv)


def _run(recipe: MergeRecipe, words: list[str]) -> str:
    """Merge, and return a line about it."""
    if words:
        raise Faults([f"{words[0]}: merging has no such setting"])
    merge(recipe)
    return f"{recipe.out_model / adapter.UPDATE}: {len(recipe.updates)} updates in one of rank {recipe.rank}"
