"""Artifacts of an arm with their lineage: what it made (rankings, answers) and what it used (data set, models).

Inputs are small files with the checksums and fingerprints of the manifest, not the data and weights themselves. A run
is linked to them where the client can, which is online; an offline run has them as metadata of what it made, and gets
the links when ``python -m memlab.track sync`` sends it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.harness.results import ArmRun

MADE = {
    "ranking": ("ranking.parquet", "context.parquet", "questions.parquet", "ids.parquet", "run.trec", "metrics.json",
                "config.yaml", "manifest.json"),
    "answers": ("answers.jsonl", "verdicts.jsonl", "attribution.parquet"),
}
"""Type of an artifact -> files of the run folder in it; one without any file is not made."""

LONGEST = 128
"""Letters of an artifact's name that W&B accepts."""


@dataclass(frozen=True)
class Input:
    """Something that an arm used: its type and name in W&B, and the facts that identify it."""

    kind: str
    name: str
    facts: dict[str, Any]


def inputs(manifest: dict[str, Any]) -> list[Input]:
    """Name the data set and every model of a manifest, each once.

    >>> [i.name for i in inputs({"dataset": "locomo", "data": {"sha256": "1f"}, "pipeline": {
    ...     "dense": {"is": "memlab.search.dense.Dense", "embedder": {"is": "SentenceEmbedder", "weights": "78"}}}})]
    ['data-locomo', 'model-SentenceEmbedder-ac3b9e']
    """
    data = {"dataset": manifest.get("dataset"), "data": manifest.get("data")}
    found = {data_name(manifest): Input("dataset", data_name(manifest), data)}
    for model in _models(manifest.get("pipeline")):
        digest = hashlib.blake2b(json.dumps(model, sort_keys=True, default=str).encode(), digest_size=3).hexdigest()
        label = str(model.get("model") or model["is"]).rpartition("/")[2]
        one = Input("model", name_of("model", label, tail=digest), model)
        found[one.name] = one
    return list(found.values())


def data_name(manifest: dict[str, Any]) -> str:
    """Name the data set's artifact; other contents of the same name are further versions of it."""
    return name_of("data", str(manifest.get("dataset")))


def name_of(*words: str, tail: str = "") -> str:
    """Join words to a name that W&B accepts: letters, digits, ``-_.``, at most ``LONGEST``.

    >>> name_of("model", "Qwen 3", tail="ab12")
    'model-Qwen_3-ab12'
    """
    ending = f"-{tail}" if tail else ""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(words))[:LONGEST - len(ending)] + ending


def log(wandb: Any, run: Any, arm: ArmRun) -> None:
    """Link the run to what it used, where the client can, and give it what it made."""
    used = inputs(arm.manifest)
    if not run.offline:
        for one in used:
            made = wandb.Artifact(one.name, one.kind, metadata=one.facts)
            with made.new_file("identity.json") as file:
                json.dump(one.facts, file, indent=1, sort_keys=True, default=str)
            run.use_artifact(made)
    for kind, names in MADE.items():
        files = [arm.folder / name for name in names if (arm.folder / name).is_file()]
        if not files:
            continue
        made = wandb.Artifact(name_of(kind, arm.name, tail=run.id), kind, metadata={
            "arm": arm.name, "digest": arm.digest, "used": {one.name: one.facts for one in used}})
        for path in files:  # a finished folder does not change: the client need not copy it first
            made.add_file(str(path), name=path.name, skip_cache=True, policy="immutable")
        run.log_artifact(made)


def _models(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the identities of models in a pipeline's description; stages are named by their module, models are not."""
    if isinstance(part, dict):
        if "." not in str(part.get("is", ".")) and ("weights" in part or "model" in part):
            yield part
        for inner in part.values():
            yield from _models(inner)
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from _models(inner)
