"""Models of sentence-transformers, one per device: in this process, or each in a process of its own.

Threads of one process launch the kernels of several GPUs in turn, under Python's lock; a process per GPU does not wait
for the others. Sentence-transformers has a pool of processes too, but it makes its own batches, and the caller of a
worker that fails waits forever. Here an error reaches the caller, a lack of memory as ``torch.OutOfMemoryError``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from threading import Lock
from typing import Any

from memlab.errors import MemlabError, error_message
from memlab.models.local.backend import Runtime, disable_progress_bars
from memlab.models.local.batching import Room, attempt

APART_PAYS = 20_000_000
"""Tokens above which several GPUs get a process each: starting one takes some ten seconds. Estimated, not measured."""

SECONDS = 10.0
"""How long a process that is no longer needed may take to end."""


class LoadedModels(Sequence[Any]):
    """One model per device, each loaded when it is first used."""

    def __init__(self, load: Callable[[str], Any], devices: tuple[str, ...]) -> None:
        self._load, self._devices = load, devices
        self._here: dict[int, Any] = {}
        self.room: Room = {}

    def __len__(self) -> int:
        return len(self._devices)

    def __getitem__(self, at: Any) -> Any:
        if at not in self._here:
            self._here[at] = self._load(self._devices[at])
        return self._here[at]

    def workers(self, tokens: int) -> Sequence[Any]:
        """Return the models for a job of this many tokens; for a long one, all but the first in their own processes.

        The first stays here, where its tokenizer is. Those in processes return arrays, no tensors.
        """
        return [self[0], *self._apart] if len(self) > 1 and tokens > APART_PAYS else self

    @cached_property
    def _apart(self) -> list[RemoteModel]:
        return [RemoteModel(self._load, device) for device in self._devices[1:]]


@lru_cache(maxsize=8)
def load_on_devices(kind: str, folder: Path, runtime: Runtime, code: str | None, wrap: Callable[..., Any] | None = None,
                    *options: Any) -> LoadedModels:
    """Return sentence-transformers' class ``kind`` on each device, loaded once per process at its first use.

    Each is ``wrap(model, device, *options)``, or the model itself. ``code`` is None if no code of a model is run, ""
    for code in its folder, and else the commit of the repository that its code comes from.
    """
    return LoadedModels(partial(_load_one, kind, folder, runtime, code, wrap, options), runtime.devices)


def _load_one(kind: str, folder: Path, runtime: Runtime, code: str | None, wrap: Callable[..., Any] | None,
              options: tuple[Any, ...], device: str) -> Any:
    import sentence_transformers
    import torch

    load = getattr(sentence_transformers, kind, None)
    if load is None:
        raise MemlabError(f"this sentence-transformers has no {kind}", fix="pip install 'sentence-transformers>=6'")
    disable_progress_bars()
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[runtime.dtype]

    def load_with(attention: str) -> Any:
        kernel = {} if attention == "auto" else {"attn_implementation": attention}
        pinned = {"code_revision": code} if code else {}
        return load(str(folder), device=device, trust_remote_code=code is not None,
                    model_kwargs={"dtype": dtype, **kernel, **pinned},
                    **({"config_kwargs": pinned} if pinned else {})).eval()

    attention: str = runtime.attention
    if attention == "auto" and not runtime.cpu and runtime.dtype != "fp32" and _has_flash_attention(device):
        attention = "flash_attention_2"  # padded batches would take a slower kernel of PyTorch's own
    try:
        model = load_with(attention)
    except (ValueError, ImportError):
        if attention == runtime.attention:
            raise
        model = load_with("auto")  # a model without it
    if code is None:  # code of a model may load weights in its own way
        check_weights(model, folder)
    loaded = wrap(model, device, *options) if wrap else model  # it may change weights
    if runtime.backend == "onednn":
        from memlab.models.local.onednn import pack_linears

        pack_linears(model)
    return loaded


def check_weights(model: Any, folder: Path) -> None:
    """Raise MemlabError if weights of a model are in no file: transformers makes random ones, others in each process.

    From version 5 on transformers marks each weight that it has read. An encoder's pooler is left out unless a
    classifier is behind it: sentence vectors do not use it.
    """
    from transformers import PreTrainedModel

    for part in model.modules():
        if not isinstance(part, PreTrainedModel):
            continue
        classifier = type(part).__name__.endswith("ForSequenceClassification")
        read = {name: hasattr(weight, "_is_hf_initialized") for name, weight in part.named_parameters()
                if classifier or "pooler." not in name}
        missing = [name for name, is_read in read.items() if not is_read]
        if missing and len(missing) < len(read):
            raise MemlabError(f"the files hold no weights {', '.join(missing[:3])}, which would be random",
                              where=str(folder), fix="give a trained reranker, or train one (memlab train reranker)"
                              if classifier else "give a complete copy of the model")


def _has_flash_attention(device: str) -> bool:
    """Return whether the package is installed and has kernels for a GPU, which needs compute capability 8.0."""
    import torch
    from transformers.utils.import_utils import is_flash_attn_2_available  # another package may bear the same name

    return bool(is_flash_attn_2_available()) and torch.cuda.get_device_capability(device) >= (8, 0)


class RemoteModel:
    """A model on one device, in a process that sees no other GPU. Its methods take and return arrays.

    Two threads may call it: one's arguments are on their way while the other's are computed. The process starts at
    once and loads while the caller goes on; it ends when this object or the caller's process does.
    """

    def __init__(self, load: Callable[[str], Any], device: str) -> None:
        self._device = device
        self._sending, self._receiving = Lock(), Lock()
        self._connection, theirs = Pipe()
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, env=_environment(device), pass_fds=[theirs.fileno()],  # noqa: S603
                                         start_new_session=True)  # Ctrl-C reaches the caller alone
        theirs.close()
        weakref.finalize(self, _end, self._connection, self._process)
        self._connection.send((load, "cuda:0" if device.startswith("cuda") else device))  # it sees one GPU

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Return a function that calls this method of the model."""
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(self._call, method)

    def _call(self, method: str, *arguments: Any) -> Any:
        import torch

        try:
            with self._sending:
                self._connection.send((method, arguments))
                self._receiving.acquire()  # before the next request is sent, so that replies keep the order of requests
            try:
                status, reply = self._connection.recv()
            finally:
                self._receiving.release()
        except (EOFError, OSError) as error:
            status = self._process.wait(SECONDS)
            raise MemlabError(f"the process that computes on {self._device} ended with exit status {status}",
                              fix="more main memory, or a single device such as device=cuda:0") from error
        if status == "memory":
            raise torch.OutOfMemoryError(f"{self._device} has no memory for this batch")
        if status == "error":
            raise MemlabError(f"the process that computes on {self._device} failed: {reply}")
        return reply


def serve(connection: Connection) -> None:
    """Load a model and answer calls of its methods until the caller hangs up; each with the error if loading failed."""
    try:
        load, device = connection.recv()
        model, failure = None, ""
        try:
            model = load(device)
        except Exception as error:
            failure = error_message(error)
        while True:
            method, arguments = connection.recv()
            connection.send(("error", failure) if failure else _result(model, method, arguments))
    except (EOFError, OSError):
        return


def _result(model: Any, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """Return the status and the result of a call of a method, or its error."""
    try:
        result = attempt(partial(getattr(model, method), *arguments))
    except Exception as error:
        return "error", error_message(error)
    return ("memory", None) if result is None else ("result", result)


def _environment(device: str) -> dict[str, str]:
    """Return the environment of a process that imports what this one can, and sees this device's GPU alone."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)}
    if device.startswith("cuda"):
        number = int(device.partition(":")[2] or 0)
        visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        environment["CUDA_VISIBLE_DEVICES"] = visible[number] if visible else str(number)
    return environment


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    """Hang up, and wait until the process has ended."""
    connection.close()
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
