"""W&B artifacts of an arm with their lineage: its outputs (rankings, answers) and its inputs (data set, models).

Inputs are small files with the checksums and fingerprints of the manifest, not the data and weights themselves. A run
is linked to them online; an offline run has them as metadata of its outputs, and gets the links when ``python -m
memlab.track sync`` sends it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.harness.results import ArmRun

OUTPUTS = {
    "ranking": ("ranking.parquet", "context.parquet", "questions.parquet", "ids.parquet", "run.trec", "metrics.json",
                "config.yaml", "manifest.json"),
    "answers": ("answers.jsonl", "verdicts.jsonl", "attribution.parquet"),
}
"""Type of an artifact -> its files of the run folder; an artifact without any file is skipped."""

LONGEST = 128
"""Letters of an artifact's name that W&B accepts."""


@dataclass(frozen=True)
class ArtifactInput:
    """An input of an arm: its type and name in W&B, and the facts that identify it."""

    kind: str
    name: str
    facts: dict[str, Any]


def inputs(manifest: dict[str, Any]) -> list[ArtifactInput]:
    """Return the data set and every model of a manifest, each once.

    >>> [i.name for i in inputs({"dataset": "locomo", "data": {"sha256": "1f"}, "pipeline": {
    ...     "dense": {"is": "memlab.Dense", "embedder": {"is": "SentenceEmbedder", "weights": "78"}}}})]
    ['data-locomo', 'model-SentenceEmbedder-ac3b9e']
    """
    data = {"dataset": manifest.get("dataset"), "data": manifest.get("data")}
    by_name = {data_name(manifest): ArtifactInput("dataset", data_name(manifest), data)}
    for model in _models(manifest.get("pipeline")):
        digest = hashlib.blake2b(json.dumps(model, sort_keys=True, default=str).encode(), digest_size=3).hexdigest()
        label = str(model.get("model") or model["is"]).rpartition("/")[2]
        name = artifact_name("model", label, tail=digest)
        by_name[name] = ArtifactInput("model", name, model)
    return list(by_name.values())


def data_name(manifest: dict[str, Any]) -> str:
    """Return the name of the data set's artifact; other contents of that name are further versions."""
    return artifact_name("data", str(manifest.get("dataset")))


def artifact_name(*words: str, tail: str = "") -> str:
    """Join words to a name that W&B accepts: letters, digits, ``-_.``, at most ``LONGEST``.

    >>> artifact_name("model", "Qwen 3", tail="ab12")
    'model-Qwen_3-ab12'
    """
    ending = f"-{tail}" if tail else ""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(words))[:LONGEST - len(ending)] + ending


def log(wandb: Any, run: Any, arm: ArmRun) -> None:
    """Link the run to its inputs, where it is online, and add its outputs."""
    used = inputs(arm.manifest)
    if not run.offline:
        for source in used:
            artifact = wandb.Artifact(source.name, source.kind, metadata=source.facts)
            with artifact.new_file("identity.json") as file:
                json.dump(source.facts, file, indent=1, sort_keys=True, default=str)
            run.use_artifact(artifact)
    for kind, names in OUTPUTS.items():
        files = [arm.folder / name for name in names if (arm.folder / name).is_file()]
        if not files:
            continue
        artifact = wandb.Artifact(artifact_name(kind, arm.name, tail=run.id), kind, metadata={
            "arm": arm.name, "digest": arm.digest, "used": {source.name: source.facts for source in used}})
        for path in files:  # a finished folder does not change: the client need not copy it first
            artifact.add_file(str(path), name=path.name, skip_cache=True, policy="immutable")
        run.log_artifact(artifact)


def _models(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the identities of models in a pipeline's description: their "is" names no package, unlike a stage's."""
    if isinstance(part, dict):
        if "." not in str(part.get("is", ".")) and ("weights" in part or "model" in part):
            yield part
        for inner in part.values():
            yield from _models(inner)
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from _models(inner)
