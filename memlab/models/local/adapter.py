"""Low-rank updates of an encoder's weights: a fine-tuned model as a small file beside the model that it started from.

A matrix W (m, n) becomes W + U V with U (m, r) and V (r, n), the nearest update of that rank to what training changed
(truncated singular value decomposition; Eckart and Young, "The approximation of one matrix by another of lower rank",
Psychometrika 1936). LoRA (Hu et al., 2021) trains such factors; here all weights are trained, and cut afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from memlab.models.protocols import Floats
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write, read_errors
from memlab.support.foreign import load_json, read_bytes, read_json
from memlab.support.paths import PACKAGE, expand
from memlab.support.text.display import safe_line

PROJECTION = "projection"
"""Name of a linear map (dimensions, width) of token vectors in an update."""

MOST_BYTES = 256_000_000
"""Bytes of a file that is read; the factors of a large encoder have some 50 MB."""

SHIPPED = "58c8f928640846b0f0c2c378154427d6"
"""Digest of the update that memlab ships."""

UPDATE = "update.safetensors"
"""Name of the file of an update in the folder of its training."""

RECORD = "training.json"
"""File beside a trained update that records its training, with the update's digest as ``update``."""

_GIVE = "give the update.safetensors that `memlab train encoder` wrote for this model: embedder.adapter=FILE"


@dataclass(frozen=True)
class UpdateCard:
    """What a file of an update says of itself.

    digest: of its bytes (BLAKE2b, 128 bits, hexadecimal). base: ``files_digest`` of the model that the training started
    from; None if the file does not say. dimensions: numbers of a token's vector; None without a map of these.
    """

    file: Path
    digest: str
    base: str | None
    dimensions: int | None


def low_rank(base: Mapping[str, Floats], tuned: Mapping[str, Floats], rank: int, fix: str = "a smaller rate"
             ) -> dict[str, Floats]:
    """Return the update of each weight that a training changed: NAME.up and NAME.down, or NAME.add for a vector.

    Factors have half precision. The same arrays give the same factors, up to the library of linear algebra: the sign of
    each pair is that which makes the largest number of the left one positive. Raises MemlabError for weights that are
    not finite, and for changes beyond half precision; ``fix`` is what it advises.

    >>> update = low_rank({"w": np.zeros((3, 2))}, {"w": np.outer([1.0, 2.0, 3.0], [4.0, 5.0])}, 1)
    >>> print((update["w.up"] @ update["w.down"]).round(1))
    [[ 4.  5.]
     [ 8. 10.]
     [12. 15.]]
    """
    update: dict[str, Floats] = {}
    for name, weight in tuned.items():
        change = np.asarray(weight, np.float64) - np.asarray(base[name], np.float64)
        if not np.isfinite(change).all():
            raise MemlabError(f"{name} holds a number that is not finite", fix=fix)
        if not change.any():
            continue
        if change.ndim != 2:
            update[f"{name}.add"] = _half(change, name, fix)
            continue
        left, values, right = np.linalg.svd(change, full_matrices=False)
        left, values, right = left[:, :rank], np.sqrt(values[:rank]), right[:rank]
        sign = np.sign(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])])
        update[f"{name}.up"] = _half(left * values * sign, name, fix)
        update[f"{name}.down"] = _half(right * (values * sign)[:, None], name, fix)
    return update


def _half(numbers: NDArray[np.float64], name: str, fix: str) -> Floats:
    """Return numbers in half precision; raise MemlabError if it cannot hold them."""
    most = np.finfo(np.float16).max
    if not (np.abs(numbers) <= most).all():  # nor NaN
        raise MemlabError(f"{name} changes by more than fp16 holds ({most:,.0f})", fix=fix)
    return numbers.astype(np.float16)


def write_update(file: Path, update: Mapping[str, Floats], card: Mapping[str, Any]) -> str:
    """Write an update and what is to be known of it as safetensors; return the digest of the file.

    Equal contents give equal bytes. Raises MemlabError for what ``read_update`` would refuse.
    """
    from safetensors.numpy import save

    _check(update, file, "a smaller rate")
    ordered = {name: np.ascontiguousarray(update[name]) for name in sorted(update)}
    content = save(ordered, {"card": json.dumps(card, sort_keys=True)})
    atomic_write(file, content)
    return _digest(content)


def read_update(file: Path) -> tuple[UpdateCard, dict[str, Floats]]:
    """Return the card and the arrays of an update, by their names.

    Raises MemlabError for a file of another form, and for one whose digest is not the one that was recorded.
    """
    from safetensors.numpy import load

    too_large = MemlabError(f"is larger than an update of weights may be ({MOST_BYTES / 1e6:,.0f} MB)",
                            where=str(file), fix=_GIVE)
    with read_errors(file, _GIVE):
        if file.stat().st_size > MOST_BYTES:  # before its bytes take memory
            raise too_large
        content = read_bytes(file, MOST_BYTES, too_large)
    digest, recorded = _digest(content), _recorded_digest(file)
    if recorded not in (None, digest):
        raise MemlabError(f"is damaged: its digest is {digest}, and {recorded} was recorded", where=str(file),
                          fix="copy it or train it again; for the update that memlab ships, install memlab again")
    try:
        tensors: dict[str, Floats] = load(content)
        notes = json.loads(content[8:8 + int.from_bytes(content[:8], "little")]).get("__metadata__", {})
        card = load_json(notes.get("card", "null"))
    except Exception as error:  # safetensors raises an exception of its own, and others
        reason = shorten(f"{type(error).__name__}: {error}", 160)
        raise MemlabError(f"is damaged, or no file of safetensors ({reason})", where=str(file), fix=_GIVE) from error
    if not isinstance(card, dict) or not isinstance(base := card.get("base"), str | None):
        raise MemlabError("is no update of an encoder: it has no card that says what it was trained from",
                          where=str(file), fix=_GIVE)
    _check(tensors, file, _GIVE)
    dimensions = len(tensors[PROJECTION]) if PROJECTION in tensors else None
    return UpdateCard(file, digest, base, dimensions), tensors


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _recorded_digest(file: Path) -> Any:
    """Return the digest of an update as the record of its training has it; None without a record."""
    if file == update_file("memory"):
        return SHIPPED
    with suppress(OSError, ValueError):
        return read_json(file.with_name(RECORD)).get("update") if file.name == UPDATE else None
    return None


def _check(tensors: Mapping[str, Floats], file: Path, fix: str) -> None:
    """Raise MemlabError unless all arrays are finite, and each is a map, a vector's change or one of two factors."""
    for name in tensors:
        if fault := _fault(name, tensors):
            raise MemlabError(safe_line(f"{name[:120]} {fault}"), where=str(file), fix=fix)


def _fault(name: str, tensors: Mapping[str, Floats]) -> str:
    """Return why an array is no part of an update; empty if it is one."""
    weight, _, part = name.rpartition(".")
    if name != PROJECTION and (part not in {"up", "down", "add"} or not weight):
        return "is no part of an update"
    if not np.isfinite(tensors[name]).all():
        return "holds a number that is not finite"
    other = {"up": "down", "down": "up"}.get(part)
    return f"is there without {weight[:120]}.{other}" if other and f"{weight}.{other}" not in tensors else ""


def update_file(adapter: str | Path) -> Path:
    """Return the file of an update; ``memory`` is the one that memlab ships (docs/minilm_memory.md).

    >>> update_file("memory").name, str(update_file(Path("mine.safetensors")))
    ('minilm_memory.safetensors', 'mine.safetensors')
    """
    return PACKAGE / "models" / "local" / "minilm_memory.safetensors" if adapter == "memory" else expand(adapter)


def update_card(file: Path) -> UpdateCard:
    """Return the card of an update, read once for each state of the file; raise MemlabError for one of another form."""
    with read_errors(file, _GIVE):
        state = os.stat(file)
    return _card(file, state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=32)
def _card(file: Path, *state: int) -> UpdateCard:  # noqa: ARG001 (the state is a part of the key)
    return read_update(file)[0]


@threadpool_limits.wrap(limits=1)  # many small sums: on a busy machine waiting threads cost 10 x the processor time
def apply_update(model: Any, file: Path, *, digest: str | None = None, width: int | None = None) -> Floats | None:
    """Add an update to the weights of a loaded transformer; return its map of token vectors, if it has one.

    Sums are computed in fp32 and kept in the model's number format. Raises MemlabError, and changes nothing, where the
    update is of another model, or the file has not this ``digest`` or its map not this ``width``.
    """
    import torch

    card, tensors = read_update(file)
    if digest not in (None, card.digest):
        raise MemlabError("changed after it was checked", where=str(file), fix="start again, with the new update")
    projection = tensors.pop(PROJECTION, None)
    weights, faults = dict(model.named_parameters()), list[str]()
    changes = {name: change_of(tensors, name, np.float32) for name in changed_weights(tensors)}
    for name, change in changes.items():
        if name not in weights:
            faults.append(f"changes {name}, which this model lacks")
        elif change.shape != tuple(weights[name].shape):
            faults.append(f"{name} has the shape {change.shape}, and this model's {tuple(weights[name].shape)}")
    if projection is not None and width not in (None, projection.shape[1]):
        faults.append(f"{PROJECTION} maps {projection.shape[1]} numbers a token, and this model gives {width}")
    if faults:
        raise MemlabError(safe_line(faults[0], 240), where=str(file),
                          fix="give an update of this model, or another model")
    with torch.no_grad():
        for name, change in changes.items():
            weight = weights[name]
            weight.copy_(weight.float() + torch.from_numpy(change).to(weight.device))
            if not torch.isfinite(weight).all():
                raise MemlabError(f"{name} with its update is more than {weight.dtype} holds", where=str(file),
                                  fix="embedder.dtype=fp32")
    return None if projection is None else projection.astype(np.float32)


def changed_weights(tensors: Mapping[str, Floats]) -> list[str]:
    """Return the names of the weights that an update without a map changes, sorted."""
    return sorted({name.rpartition(".")[0] for name in tensors})


def change_of(tensors: Mapping[str, Floats], name: str, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """Return the change of a weight, computed in a number format."""
    added = tensors.get(f"{name}.add")
    if added is not None:
        return added.astype(dtype)
    return np.asarray(tensors[f"{name}.up"].astype(dtype) @ tensors[f"{name}.down"].astype(dtype))
