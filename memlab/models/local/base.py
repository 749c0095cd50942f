"""Base classes of models that run on this machine: their files, the digest of these, and the code that comes with them.

A local folder and the same model from the hub have the same digest, so that vectors made with one serve the other. Code
of a model runs only if it is in the model's folder or pinned to a commit of the hub.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from memlab.models.local.adapter import RECORD, UPDATE
from memlab.models.local.backend import Backend, Device, Dtype, Runtime, resolve
from memlab.models.local.loading import LoadedModels, load_on_devices
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.disk_cache import load_or_make
from memlab.support.errors import DiskFault, MemlabError, MissingFiles
from memlab.support.files import disk_faults
from memlab.support.foreign import read_json
from memlab.support.paths import expand

_WEIGHTS = (".safetensors", ".bin", ".model", ".json", ".txt", ".py")
M3_HEAD, SPARSE_HEAD = "colbert_linear.pt", "sparse_linear.pt"
"""Files of bge-m3's linear layers of token vectors and of their weights (Chen et al., M3-Embedding, 2024)."""

_RECORDS = {RECORD, UPDATE}
"""Files of memlab's trainings beside the weights; they hold times, and no vector depends on them."""

_COPIES = ["onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.onnx", "*.jpg", "*.png"]
"""Files of hub repositories that memlab does not read: copies of the weights in other formats, and pictures."""

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")

_COMMIT = re.compile(r"[0-9a-f]{40}")


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
    from huggingface_hub import constants, snapshot_download

    try:
        with disk_faults(Path(constants.HF_HUB_CACHE), other="choose another place with HF_HOME=DIR"):
            return Path(snapshot_download(str(path), revision=revision, ignore_patterns=_COPIES))
    except DiskFault:
        raise
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {error}".splitlines()[0], 160)
        raise MissingFiles(f"the model hub did not give '{path}' ({reason})",
                           fix=f"give a local folder: {option}=FOLDER") from error


def token_width(folder: Path) -> int | None:
    """Return the numbers of a token's vector as the model's own configuration says; None if it does not."""
    for file in (folder / "config.json", folder / "0_Transformer" / "config.json"):
        if config := _settings(file):
            text = config.get("text_config") or {}
            width = config.get("hidden_size") or config.get("dim") or config.get("d_model") or text.get("hidden_size")
            return width if isinstance(width, int) else None
    return None


@lru_cache(maxsize=32)
def is_colbert(folder: Path) -> bool:
    """Return whether a folder's files are those of a ColBERT model: sentence-transformers', PyLate's or Stanford's."""
    saved, config = (_settings(folder / name) for name in ("config_sentence_transformers.json", "config.json"))
    architectures = config.get("architectures")
    return (saved.get("model_type") in ("MultiVectorEncoder", "ColBERT") or "query_prefix" in saved
            or isinstance(architectures, list) and "HF_ColBERT" in architectures)


Prompt = Literal["query", "document", "default"]


@lru_cache(maxsize=32)
def saved_prompts(folder: Path, kind: str = "SentenceTransformer") -> dict[Prompt, str]:
    """Return what the files of a model of a kind put before a query, a document and any text, "" for nothing.

    As sentence-transformers reads them: ``encode_query`` and ``encode_document`` take the prompts "query" and
    "document"; where both are missing or empty, the default prompt holds for every text, as in ``encode``.
    """
    saved = _settings(folder / "config_sentence_transformers.json")
    prompts = saved.get("prompts")
    if (not isinstance(prompts, dict) or saved.get("model_type", "SentenceTransformer") != kind
            or not (folder / "modules.json").is_file()):  # the library reads no prompts then
        prompts = {}
    query, document, default = (str(prompts.get(name) or "")
                                for name in ("query", "document", str(saved.get("default_prompt_name"))))
    query, document = (query, document) if query or document else (default, default)
    return {"query": query, "document": document, "default": default}


def is_causal(folder: Path) -> bool:
    """Return whether a folder's files are those of a language model that predicts the next token."""
    architectures = _settings(folder / "config.json").get("architectures")
    return isinstance(architectures, list) and any(str(name).endswith("ForCausalLM") for name in architectures)


def projected_width(folder: Path) -> int | None:
    """Return the numbers of a token's vector of a ColBERT model as its files say; None if they do not."""
    modules: Any = None
    with suppress(OSError, ValueError, RecursionError):
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    dense = [one["path"] for one in modules if isinstance(one, dict) and isinstance(one.get("path"), str)
             and str(one.get("type")).endswith("Dense")] if isinstance(modules, list) else []
    width = _settings(folder / dense[-1] / "config.json").get("out_features") if dense else _settings(
        folder / "artifact.metadata").get("dim")
    return width if isinstance(width, int) and width > 0 else None


def _settings(file: Path) -> dict[str, Any]:
    """Return a model's file of settings; empty if there is none, or one of another form."""
    with suppress(OSError, ValueError, RecursionError):
        return read_json(file)
    return {}


@lru_cache(maxsize=32)
def files_digest(folder: Path) -> str:
    """Return a digest of a model folder's weights, tokenizer and configuration (BLAKE2b, 128 bits, hexadecimal).

    The record of a training and its update are left out, so that equal trainings give one digest.
    """
    files = sorted(f for f in folder.rglob("*")
                   if f.is_file() and (f.suffix in _WEIGHTS or f.name in (M3_HEAD, SPARSE_HEAD))
                   and f.relative_to(folder).parts[0] not in {"onnx", "openvino", *_RECORDS})
    safe = {f.parent for f in files if f.suffix == ".safetensors"}
    files = [f for f in files if not (f.suffix == ".bin" and f.parent in safe)]
    if not any(f.suffix in {".safetensors", ".bin"} for f in files):
        raise MemlabError("there are no weights (*.safetensors or *.bin)", where=str(folder))

    def digest() -> str:
        total = hashlib.blake2b(digest_size=16)
        for file in files:
            with file.open("rb") as handle:
                total.update(f"{file.relative_to(folder).as_posix()}={file.stat().st_size};".encode())
                total.update(hashlib.file_digest(handle, "blake2b").digest())
        return total.hexdigest()

    stamps = [[str(file.absolute()), (at := file.stat()).st_size, at.st_mtime_ns, at.st_ctime_ns] for file in files]
    return str(load_or_make(["weights", stamps], digest))  # read again when a file has changed


def learned_questions(folder: Path) -> frozenset[str]:
    """Return the text ids of the questions that the record of a training in a folder names; empty without a record."""
    with suppress(TypeError, AttributeError):  # a record of another form
        sources = _settings(folder / RECORD).get("sources", ())
        return frozenset(str(text_id) for source in sources for text_id in source.get("learnt", ()))
    return frozenset()


def check_pinned(field: str, value: str | None, path: str, option: str) -> None:
    """Raise MissingFiles unless a field holds the hash of a commit: a branch is what its owner puts there later."""
    if value is None or not _COMMIT.fullmatch(value):
        given = "null, the newest" if value is None else repr(value)
        raise MissingFiles(f"trust_remote_code runs code of {path} here, and {field} is {given}",
                           fix=f"read that code, then {option.rpartition('.')[0]}.{field}=COMMIT, the 40 digits that "
                               f"https://huggingface.co/{path}/commits shows; or give a local folder, {option}=FOLDER")


def trusted_code(folder: Path, code_revision: str | None, option: str) -> str:
    """Return the commit that the code of a model is taken from: "" if all of it is in the model's folder.

    Raise MemlabError if its files name code of another repository and ``code_revision`` is None.
    """
    others = sorted({name.partition("--")[0] for file in folder.rglob("*.json") for name in _references(file)
                     if "--" in name})
    if others and code_revision is not None:
        check_pinned("code_revision", code_revision, others[0], option)
    elif others:
        raise MemlabError(
            f"this model runs code of {', '.join(others)}, which its revision does not pin", where=str(folder),
            fix=f"read that code, then {option.rpartition('.')[0]}.code_revision=COMMIT, the 40 digits that "
                f"https://huggingface.co/{others[0]}/commits shows")
    return code_revision or ""


def _references(file: Path) -> list[str]:
    """Return the classes that a file of a model names in ``auto_map``, as REPOSITORY--MODULE.CLASS or MODULE.CLASS."""
    classes = _settings(file).get("auto_map")
    values = list(classes.values()) if isinstance(classes, dict) else []
    return [name for value in values for name in (value if isinstance(value, list) else [value])
            if isinstance(name, str)]


@stage
class ModelFiles:
    """A model from a folder or the hub, loaded at the first call."""

    path: str | LocalPath | None
    name: str
    revision: str | None = None  # commit on the hub; null: the newest, recorded in the manifest
    dtype: Dtype = "auto"  # fp32 on a CPU; on a GPU fp16, or bf16 if the model's own files ask for it
    device: Device = "auto"  # every GPU, else the CPU; cuda:1 is that GPU alone

    path_option: ClassVar[str] = "cross_encoder.path"
    """The override that sets the path, for messages."""

    @model_validator(mode="after")
    def _check_path(self) -> Self:
        if self.path is None:
            raise ValueError(f"this model needs weights. Fix: {self.path_option}=FOLDER, or the name of a model on the "
                             "hub, if that can be reached")
        check_path(self.path)
        if is_local(self.path):  # a model of the hub is looked at when it is needed
            self._folder()
        return self

    def origin(self) -> dict[str, Any]:
        """Return where the model came from: its name and path, and the hub's commit if it came from there."""
        path, folder = None if self.path is None else str(self.path), self._folder()
        commit = folder.name if folder.parent.name == "snapshots" else None  # the hub's cache names it so
        return {"name": self.name, "path": path, "revision": commit}

    def on_gpu(self) -> bool:
        """Return whether the model runs on a GPU."""
        return not self._runtime().cpu

    def first_device(self) -> str:
        """Return the device that the model runs on, the first one if there are several."""
        return self._runtime().devices[0]

    def token_width(self) -> int | None:
        """Return the numbers of a token's vector; None if the model's own configuration does not say."""
        return token_width(self._folder())

    def _runtime(self) -> Runtime:
        return resolve(self.device, self.dtype, "torch", self._folder())

    def _folder(self) -> Path:
        assert self.path is not None  # checked on construction
        return model_folder(self.path, self.revision, self.path_option)


@stage
class LocalModel(ModelFiles):
    """A model that memlab batches itself, on every device."""

    backend: Backend = "auto"  # on a CPU oneDNN's packed linear layers, if PyTorch has them
    # true: the model's repository runs its code here; on the hub it must be pinned by revision (and code_revision)
    trust_remote_code: bool = False
    code_revision: str | None = None  # commit of another repository that the model's config.json takes code from
    # padded tokens per batch; null: 2048 on a CPU, 65536 on a GPU; a batch too large for a GPU's memory is halved
    token_budget: Annotated[int, Field(ge=256)] | None = None

    def _identity(self, kind: str, /, **settings: Any) -> dict[str, Any]:
        """Return a model's identity; the weights count by their digest, so a path never enters."""
        runtime = self._runtime()
        return {"is": kind, "weights": files_digest(self._folder()), **settings, "dtype": runtime.dtype,
                "backend": runtime.backend}

    def _runtime(self) -> Runtime:
        return resolve(self.device, self.dtype, self.backend, self._folder())

    def _folder(self) -> Path:
        if self.trust_remote_code and self.path is not None and not is_local(self.path):
            check_pinned("revision", self.revision, str(self.path), self.path_option)
        return super()._folder()

    def _lanes(self) -> int:
        """Return the number of batches under way per device: on a GPU one is prepared while another is computed."""
        return 1 if self._runtime().cpu else 2

    def _budget(self) -> int:
        """Return the padded tokens per batch."""
        return self.token_budget or self._runtime().budget

    def _load(self, kind: str, wrap: Callable[..., Any] | None = None, *options: Any) -> LoadedModels:
        """Return sentence-transformers' class ``kind`` on each device; see ``load_on_devices``."""
        code = trusted_code(self._folder(), self.code_revision, self.path_option) if self.trust_remote_code else None
        return load_on_devices(kind, self._folder(), self._runtime(), code, wrap, *options)
