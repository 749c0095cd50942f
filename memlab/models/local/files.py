"""The folder of a model's files, and the digest that identifies them.

A local folder and the same model from the hub have the same digest, so that vectors made with one serve the other.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from textwrap import shorten

from memlab.errors import MemlabError, MissingFiles
from memlab.runtime.paths import expand

_WEIGHTS = (".safetensors", ".bin", ".model", ".json", ".txt", ".py")
_COPIES = ["onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.onnx", "*.jpg", "*.png"]
"""Files of hub repositories that memlab does not read: copies of the weights in other formats, and pictures."""

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def is_local(path: str | Path) -> bool:
    """Return whether a path means a folder rather than a model on the hub."""
    return isinstance(path, Path) or expand(path).is_dir() or not _HUB_NAME.fullmatch(path)


def check_path(path: str | Path) -> None:
    """Raise ValueError unless path is a folder with a config.json or may be the name of a model on the hub."""
    if not is_local(path):
        return
    folder = expand(path)
    if not folder.is_dir():
        raise ValueError(f"there is no model folder {folder}. Fix: give the folder that holds config.json")
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise ValueError(f"{folder} holds neither config.json nor modules.json. Fix: give a model's own folder")


@lru_cache(maxsize=32)
def model_folder(path: str | Path, revision: str | None, option: str) -> Path:
    """Return the local folder of a model, fetching it from the hub if it is not a folder.

    ``option`` is the override that sets the path, for the message when the hub cannot be reached.
    """
    if is_local(path):
        return expand(path)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(str(path), revision=revision, ignore_patterns=_COPIES))
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {error}".splitlines()[0], 160)
        raise MissingFiles(f"the model hub did not give '{path}' ({reason})",
                           fix=f"give a local folder: {option}=FOLDER") from error


def hub_commit(folder: Path) -> str | None:
    """Return the hub commit of a fetched folder; None for any other folder."""
    return folder.name if folder.parent.name == "snapshots" else None


def token_width(folder: Path) -> int | None:
    """Return the numbers of a token's vector as the model's own configuration says; None if it does not."""
    for file in (folder / "config.json", folder / "0_Transformer" / "config.json"):
        with suppress(OSError, ValueError, TypeError, AttributeError):  # a file of another form
            config = json.loads(file.read_text(encoding="utf-8"))
            text = config.get("text_config") or {}
            width = config.get("hidden_size") or config.get("dim") or config.get("d_model") or text.get("hidden_size")
            return int(width) if width else None
    return None


def weight_count(folder: Path) -> int | None:
    """Return the number of weights of a folder's models, from the heads of their files; None without such files."""
    total = 0
    for file in sorted(folder.rglob("*.safetensors")):
        try:
            with file.open("rb") as handle:
                size = int.from_bytes(handle.read(8), "little")
                head = json.loads(handle.read(min(size, file.stat().st_size)))
            total += sum(math.prod(tensor["shape"]) for name, tensor in head.items() if name != "__metadata__")
        except (OSError, ValueError, TypeError, AttributeError, KeyError):  # loading it says what is wrong
            return None
    return total or None


@lru_cache(maxsize=32)
def files_digest(folder: Path) -> str:
    """Return a digest of a model folder's weights, tokenizer and configuration (BLAKE2b, 128 bits, hexadecimal)."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and f.suffix in _WEIGHTS
                   and f.relative_to(folder).parts[0] not in {"onnx", "openvino"})
    safe = {f.parent for f in files if f.suffix == ".safetensors"}
    files = [f for f in files if not (f.suffix == ".bin" and f.parent in safe)]
    if not any(f.suffix in {".safetensors", ".bin"} for f in files):
        raise MemlabError("there are no weights (*.safetensors or *.bin)", where=str(folder))
    total = hashlib.blake2b(digest_size=16)
    for file in files:
        with file.open("rb") as handle:
            total.update(f"{file.relative_to(folder).as_posix()}={file.stat().st_size};".encode())
            total.update(hashlib.file_digest(handle, "blake2b").digest())
    return total.hexdigest()
