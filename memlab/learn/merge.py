"""Merge trained updates of one encoder into one: ``memlab train merge 'updates={FILE: FACTOR, ...}' out_model=DIR``.

    memlab train merge 'updates={A/update.safetensors: 0.6, B/update.safetensors: 0.6}' out_model=DIR

The change of each weight is the sum of the updates' changes times their factors, cut to the rank (Ilharco et al.,
"Editing Models with Task Arithmetic", ICLR 2023). So one encoder has what several trainings on different data learned,
at the size and cost of one. DIR holds the update alone (``embedder.adapter=DIR/update.safetensors``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.errors import Faults, MemlabError
from memlab.learn.cross_fit_rerank import FILE
from memlab.learn.recipe import finished_record, sources_of, train_command
from memlab.models.local.adapter import (
    PROJECTION,
    UPDATE,
    change_of,
    changed_weights,
    low_rank,
    read_update,
    update_file,
    write_update,
)
from memlab.models.protocols import Floats
from memlab.runtime.files import atomic_dir, write_json
from memlab.stage import LocalPath, spec_digest, stage

FORMAT = "memlab-merged-1"


@stage
class MergeRecipe:
    """Settings of a merged update.

    updates: files of ``memlab train encoder`` with one base, and the factor of each; ``memory`` is the one that memlab
    ships. out_model: folder of the merged update. rank: of its matrices.
    """

    updates: Annotated[dict[Literal["memory"] | LocalPath, Annotated[float, Field(allow_inf_nan=False)]],
                       Field(min_length=1)]
    out_model: LocalPath
    rank: Annotated[int, Field(ge=1)] = 32


@np.errstate(over="ignore", invalid="ignore")  # low_rank refuses what is not finite
def merge(recipe: MergeRecipe) -> dict[str, Any]:
    """Write the merged update and return its record; raise MemlabError for updates that do not fit together."""
    changes: dict[str, NDArray[Any]] = {}
    merged: list[dict[str, Any]] = []
    parts: list[tuple[Path, float, dict[str, Floats]]] = []
    sources, bases = [], {}
    for name_or_file, factor in recipe.updates.items():
        file = update_file(name_or_file)
        card, tensors = read_update(file)
        if any(one["update"] == card.digest for one in merged):
            raise MemlabError("is the same update as another one", where=str(file), fix="leave it out")
        if PROJECTION in tensors:
            raise MemlabError("maps token vectors to fewer numbers, and maps cannot be added", where=str(file),
                              fix="an update that was trained without dimensions")
        bases[card.base] = file
        merged.append({"update": card.digest, "factor": factor})
        parts.append((file, factor, tensors))
        sources += sources_of(file)
        for name in changed_weights(tensors):
            change = factor * change_of(tensors, name, np.float64)
            before = changes.setdefault(name, np.zeros_like(change))
            if before.shape != change.shape:
                raise MemlabError(f"{name} has the shape {change.shape}, and {before.shape} in another update",
                                  where=str(file), fix="merge updates of one base")
            changes[name] = before + change
    if len(bases) > 1:
        raise MemlabError("were trained from different weights", where=" and ".join(map(str, bases.values())),
                          fix="merge updates of one base")
    base = next(iter(bases))
    mark = spec_digest({"merged": merged, "rank": recipe.rank})
    if finished := finished_record(recipe.out_model, mark):
        return finished
    update = low_rank({name: np.zeros_like(change) for name, change in changes.items()}, changes, recipe.rank,
                      "smaller factors")
    for file, factor, tensors in parts:
        if not _has_effect(factor, tensors, changes):
            raise MemlabError(f"changes nothing at the factor {factor:g}: fp16 does not hold what it adds",
                              where=str(file), fix="a larger factor, or leave it out")
    if not update:
        raise MemlabError("the updates cancel each other out", where="updates", fix="other factors")
    with atomic_dir(recipe.out_model) as temporary:
        digest = write_update(temporary / UPDATE, update, {"base": base, "rank": recipe.rank, "dimensions": None})
        record = {"format": FORMAT, "mark": mark, "recipe": {"rank": recipe.rank}, "base": base, "sources": sources,
                  "merged": merged, "update": digest}
        write_json(temporary / FILE, record)
    return record


def _has_effect(factor: float, tensors: Mapping[str, Floats], changes: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether some sum of changes would be another number of half precision without this update's."""
    return any((np.abs(factor * change_of(tensors, name, np.float64)) >= np.maximum(
        np.abs(changes[name]) * 2.0**-11, 2.0**-25)).any() for name in changed_weights(tensors))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return train_command(MergeRecipe, __doc__ or "", _run, argv)


def _run(recipe: MergeRecipe, words: list[str]) -> str:
    """Merge, and return a line about it."""
    if words:
        raise Faults([f"{words[0]}: merging has no such setting"])
    merge(recipe)
    return f"{recipe.out_model / UPDATE}: {len(recipe.updates)} updates in one of rank {recipe.rank}"
