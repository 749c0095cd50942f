"""Low-rank updates of an encoder's weights: a fine-tuned model as a small file beside the model that it started from.

A matrix W (m, n) becomes W + U V with U (m, r) and V (r, n), the nearest update of that rank to what training changed
(truncated singular value decomposition; Eckart and Young, "The approximation of one matrix by another of lower rank",
Psychometrika 1936). LoRA (Hu et al., 2021) trains such factors; here all weights are trained, and cut afterwards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from memlab.errors import MemlabError
from memlab.models.protocols import Floats

PROJECTION = "projection"
"""Name of a linear map (dimensions, width) of token vectors in an update."""

_LARGEST = 1 << 28
"""Bytes of a file that is read; the factors of a large encoder have some 50 MB."""


def low_rank(base: Mapping[str, Floats], tuned: Mapping[str, Floats], rank: int) -> dict[str, Floats]:
    """Return the update of each weight that a training changed: NAME.up and NAME.down, or NAME.add for a vector.

    Factors have half precision. The same arrays give the same factors, up to the library of linear algebra: the sign of
    each pair is that which makes the largest number of the left one positive.

    >>> update = low_rank({"w": np.zeros((3, 2))}, {"w": np.outer([1.0, 2.0, 3.0], [4.0, 5.0])}, 1)
    >>> print((update["w.up"] @ update["w.down"]).round(2))
    [[ 4.  5.]
     [ 8. 10.]
     [12. 15.]]
    """
    update: dict[str, Floats] = {}
    for name, weight in tuned.items():
        change = np.asarray(weight, np.float64) - np.asarray(base[name], np.float64)
        if not change.any():
            continue
        if change.ndim != 2:
            update[f"{name}.add"] = change.astype(np.float16)
            continue
        left, values, right = np.linalg.svd(change, full_matrices=False)
        left, values, right = left[:, :rank], np.sqrt(values[:rank]), right[:rank]
        sign = np.sign(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])])
        update[f"{name}.up"] = (left * values * sign).astype(np.float16)
        update[f"{name}.down"] = (right * (values * sign)[:, None]).astype(np.float16)
    return update


def write_update(file: Path, update: Mapping[str, Floats], card: Mapping[str, Any]) -> None:
    """Write an update and what is to be known of it as safetensors; equal contents give equal bytes."""
    from safetensors.numpy import save

    ordered = {name: np.ascontiguousarray(update[name]) for name in sorted(update)}
    file.write_bytes(save(ordered, {"card": json.dumps(card, sort_keys=True)}))


def apply_update(model: Any, file: Path) -> Floats | None:
    """Add an update to the weights of a loaded transformer; return its map of token vectors, if it has one.

    Raises MemlabError where the update is of another model.
    """
    import torch
    from safetensors.numpy import load

    try:
        if file.stat().st_size > _LARGEST:
            raise MemlabError("this is larger than an update of weights", where=str(file))
        update = load(file.read_bytes())
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(file)) from error
    except Exception as error:  # safetensors raises an exception of its own, and others
        raise MemlabError(f"is no file of safetensors ({error})", where=str(file),
                          fix="give a file that `memlab train encoder` wrote") from error
    projection = update.pop(PROJECTION, None)
    weights, used = dict(model.named_parameters()), set()
    with torch.no_grad():
        for name, weight in weights.items():
            if f"{name}.up" in update and f"{name}.down" in update:
                change = update[f"{name}.up"].astype(np.float32) @ update[f"{name}.down"].astype(np.float32)
                used |= {f"{name}.up", f"{name}.down"}
            elif f"{name}.add" in update:
                change = update[f"{name}.add"].astype(np.float32)
                used.add(f"{name}.add")
            else:
                continue
            if change.shape != tuple(weight.shape):
                raise MemlabError(f"{name} has the shape {change.shape}, and this model's {tuple(weight.shape)}",
                                  where=str(file), fix="give an update of this model, or another model")
            weight += torch.from_numpy(change).to(weight.device, weight.dtype)
    if unknown := sorted(set(update) - used):
        raise MemlabError(f"holds {len(unknown)} weights that this model lacks, {unknown[0]} among them",
                          where=str(file), fix="give an update of this model, or another model")
    return None if projection is None else projection.astype(np.float32)


@lru_cache(maxsize=32)
def update_digest(file: Path) -> str:
    """Return the digest of an update (BLAKE2b, 128 bits, hexadecimal); raise MemlabError if there is no such file."""
    try:
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(file)) from error


def token_dimensions(file: Path) -> int | None:
    """Return the numbers of a token's vector that an update maps to; None if it has no map."""
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as tensors:
        return int(tensors.get_slice(PROJECTION).get_shape()[0]) if PROJECTION in tensors.keys() else None  # noqa: SIM118
