"""Published systems with models that need no weights: the presets as configured, their embedders and chats replaced."""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from memlab.experiment.config.instantiate import CONF
from memlab.experiment.harness.sweep import read
from memlab.models.protocols import Floats, Ints, Prompt, Role
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.rank.rerank import Rerank
from tests.chats import ScriptedChat
from tests.stages.search.world import Overlap, WordEmbedder

PRESETS = sorted(path.stem for path in (CONF / "system").glob("*.yaml"))
ORACLES, TAINTED, FITTED = ("oracle",), ("rag_v1_tainted",), ("best_learned", "opsem")
SAMPLE = ("best", "elizaos", "gimli_corrected", "memorystack", "oltramem", "rag_v1_corrected")
"""One preset of each kind, for tests whose other presets wait for the night."""
PUBLISHED = [name for name in PRESETS if name.startswith(("rag_v1", "elizaos", "memorystack", "gimli", "oltramem"))]


@dataclasses.dataclass(frozen=True)
class Words:
    """A word of a query matches a passage with 1 where the passage holds it, else with 0."""

    query_tokens: int = 12

    def identity(self) -> dict[str, Any]:
        return {"is": "Words"}

    def token_ids(self, texts: Sequence[str]) -> list[Ints]:
        return [np.array([zlib.crc32(w.encode()) % 9973 for w in t.lower().split()], np.int64) for t in texts]

    def token_identity(self, role: Role) -> dict[str, Any]:
        return self.identity()

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        rows = self.token_ids(texts)
        yield np.arange(len(texts)), rows, [np.eye(512, dtype=np.float32)[ids % 512] for ids in rows]


def muddled(prompt: Prompt) -> str:
    """Reply with JSON that is cut off: what small models do."""
    return '{"facts": [{"text": "The user' if prompt.schema else "I do not know."


def clear(prompt: Prompt) -> str:
    """Reply with what is asked for, made of the prompt's own words by a rule."""
    schema = json.loads(prompt.schema or "{}")
    said, asked = prompt.messages[-1].content, schema.get("properties", {})
    if schema.get("type") == "array":
        return json.dumps([n % 11 / 10 for n in range(schema["minItems"])])
    words = re.findall(r"\w{4,}", said)
    if "facts" in asked:
        facts = [{"fact": f"They spoke of {a} and {b}.", "turns": [1], "source": ("user", "assistant")[n % 2],
                  "category": "preference"} for n, (a, b) in enumerate(zip(words[::5], words[2::5]))]
        names = [{"name": w, "kind": "object", "summary": f"{w} was named."} for w in words[:8]]
        links = [{"source": a, "relation": "next to", "target": b, "when": ""} for a, b in zip(words, words[1:4])]
        return json.dumps({"facts": facts, "entities": names, "relationships": links})
    if "scores" in asked:
        return json.dumps({"scores": [{"index": n, "score": n % 11} for n in range(1, 6)]})
    if "score" in asked:
        return json.dumps({"score": zlib.crc32(said.encode()) % 11})
    if "queries" in asked:
        return json.dumps({"queries": [" ".join(words[::2]) + " again", " ".join(reversed(words))]})
    return " ".join(words)


@cache
def preset(name: str, rule: Callable[[Prompt], str] = muddled) -> Pipeline:
    """The preset's pipeline, with small models in the place of all others."""
    more = ["rank/rerank=late_interaction"] if name == "rag_v1_corrected" else []  # no weights are here
    (one,) = read([f"system={name}", "track=none", *more]).arms
    return dataclasses.replace(one.pipeline, **{slot: small(stage, rule) for slot, stage in one.pipeline.stages()})


def small(thing: Any, rule: Callable[[Prompt], str]) -> Any:
    """Replace the models in a stage, however deep they lie."""
    if isinstance(thing, Rerank):
        return dataclasses.replace(thing, scorer=Overlap())
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        return thing
    new: dict[str, Any] = {}
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if field.name == "embedder":
            new[field.name] = WordEmbedder()
        elif field.name == "matcher":
            new[field.name] = Words()
        elif field.name == "chat":
            new[field.name] = ScriptedChat(rule=rule, window=8192)
        elif dataclasses.is_dataclass(value) and small(value, rule) is not value:
            new[field.name] = small(value, rule)
    return dataclasses.replace(thing, **new) if new else thing
