"""ColBERT models: encoders trained for late interaction, with token vectors of their own making.

Sentence-transformers (6 and later) reads the files that PyLate and Stanford's ColBERT write, and keeps what they
fix: marker tokens, query expansion, which tokens count. PyLate itself pins older versions of sentence-transformers
and transformers than memlab runs on, so it is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.models.local.backend import (
    Backend,
    Device,
    Dtype,
    Runtime,
    budget_for,
    prepare,
    quietly,
    resolve,
    torch_dtype,
)
from memlab.models.local.batching import pack, spread
from memlab.models.local.files import check_path, files_digest, model_folder, resolved_revision
from memlab.models.protocols import Ints, Role
from memlab.stage import LocalPath, stage


@stage
class ColbertEncoder:
    """A ColBERT model, for ``LateInteraction(embedder=ColbertEncoder(path=...))``. Loading waits for the first call.

    Lengths, prefixes and the tokens that count are the model's own, so the options of ``LateInteraction`` for special
    tokens and punctuation have no effect.
    """

    path: str | LocalPath
    name: str = "colbert"
    revision: str | None = None
    dtype: Dtype = "auto"
    device: Device = "auto"
    backend: Backend = "auto"
    trust_remote_code: bool = False
    token_budget: Annotated[int, Field(ge=256)] | None = None

    @model_validator(mode="after")
    def _check(self) -> ColbertEncoder:
        check_path(self.path)
        return self

    def identity(self) -> dict[str, Any]:
        """All that can change a token vector; the weights count by their digest, so a path never enters."""
        runtime = self._runtime()
        return {"is": "ColbertEncoder", "weights": files_digest(self._folder()), "dtype": runtime.dtype,
                "backend": runtime.backend}

    def origin(self) -> dict[str, Any]:
        """Where the model came from, for a manifest: its name, and the hub's commit if it came from there."""
        return {"name": self.name, "path": str(self.path), "revision": resolved_revision(self._folder())}

    def token_vectors(
        self, texts: Sequence[str], role: Role, *, special: bool, punctuation: bool  # noqa: ARG002
    ) -> Iterator[tuple[Ints, Any, Any]]:
        """Yield positions (b,), unit vectors (b, length, dim) and which of them count (b, length), as tensors."""
        import torch

        models = load_colberts(self._folder(), self._runtime(), self.trust_remote_code)

        def work(model: Any, batch: Ints) -> tuple[Any, Any]:
            encode = model.encode_query if role == "query" else model.encode_document
            rows = encode([texts[i] for i in batch], batch_size=len(batch), show_progress_bar=False)
            padded = torch.nn.utils.rnn.pad_sequence([row.float() for row in rows], batch_first=True)
            lengths = torch.tensor([len(row) for row in rows], device=padded.device)
            kept = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
            return torch.nn.functional.normalize(padded, dim=2), kept

        characters = np.array([len(text) for text in texts], np.int64)
        budget = 4 * (self.token_budget or budget_for(self._runtime()))  # about 4 characters a token
        for batch, (vectors, kept) in spread(pack(characters, budget), [partial(work, model) for model in models]):
            yield batch, vectors, kept

    def token_ids(self, texts: Sequence[str], role: Role, *, special: bool, punctuation: bool) -> list[Ints]:  # noqa: ARG002
        """Raise: a ColBERT model pads its queries with tokens that stand for no word, so none can be weighted."""
        raise MemlabError("token weights need an ordinary encoder, not a ColBERT model", fix="weight no tokens")

    def _runtime(self) -> Runtime:
        return resolve(self.device, self.dtype, self.backend)

    def _folder(self) -> Path:
        return model_folder(self.path, self.revision, "cross_encoder.embedder.path")


@lru_cache(maxsize=2)
def load_colberts(folder: Path, runtime: Runtime, trust: bool) -> tuple[Any, ...]:
    """Load a ColBERT model on each of its devices, once for the process."""
    try:
        from sentence_transformers import MultiVectorEncoder
    except ImportError as error:
        raise MemlabError("ColBERT models need sentence-transformers 6",
                          fix="pip install 'sentence-transformers>=6'") from error
    quietly()
    models = tuple(MultiVectorEncoder(str(folder), device=device, trust_remote_code=trust,
                                      model_kwargs={"dtype": torch_dtype(runtime.dtype)}).eval()
                   for device in runtime.devices)
    for model in models:
        prepare(model, runtime)
    return models
