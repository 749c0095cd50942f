"""Base classes of models that run on this machine: their files, and the devices that they run on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from memlab.models.local.backend import Attention, Backend, Device, Dtype, Runtime, resolve
from memlab.models.local.files import (
    check_path,
    files_digest,
    hub_commit,
    is_local,
    model_folder,
    token_width,
    weight_count,
)
from memlab.models.local.loading import LoadedModels, load_on_devices
from memlab.models.local.remote_code import check_pinned, trusted_code
from memlab.stage import LocalPath, stage


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
        return self

    def origin(self) -> dict[str, Any]:
        """Return where the model came from: its name and path, and the hub's commit if it came from there."""
        path = None if self.path is None else str(self.path)
        return {"name": self.name, "path": path, "revision": hub_commit(self._folder())}

    def on_gpu(self) -> bool:
        """Return whether the model runs on a GPU."""
        return not self._runtime().cpu

    def first_device(self) -> str:
        """Return the device that the model runs on, the first one if there are several."""
        return self._runtime().devices[0]

    def token_width(self) -> int | None:
        """Return the numbers of a token's vector; None if the model's own configuration does not say."""
        return token_width(self._folder())

    def size(self) -> tuple[int | None, int | None]:
        """Return the number of weights, and the numbers of a token's vector, as far as the files say.

        Raises MissingFiles if they are not on this machine.
        """
        folder = self._folder()
        return weight_count(folder), token_width(folder)

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
    attn_implementation: Attention = "auto"  # on a GPU flash_attention_2 if it can be used, else the model's own
    # padded tokens per batch; null: 2048 on a CPU, 65536 on a GPU; a batch too large for a GPU's memory is halved
    token_budget: Annotated[int, Field(ge=256)] | None = None

    def _identity(self, kind: str, /, **settings: Any) -> dict[str, Any]:
        """Return a model's identity; the weights count by their digest, so a path never enters."""
        runtime = self._runtime()
        return {"is": kind, "weights": files_digest(self._folder()), **settings, "dtype": runtime.dtype,
                "backend": runtime.backend}

    def _runtime(self) -> Runtime:
        return resolve(self.device, self.dtype, self.backend, self._folder(), self.attn_implementation)

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
