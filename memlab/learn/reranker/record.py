"""The training record of a fine-tuned reranker: ``training.json``, written beside its weights.

It names the questions that the model has not seen, so that no arm can score a question with a model trained on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError
from memlab.runtime.files import write_json

FORMAT = "memlab-reranker-1"
FILE = "training.json"


@dataclass(frozen=True)
class TrainingRecord:
    """The part of a record that decides which questions a model may score.

    held_out: keys (``memlab.learn.reranker.examples.question_keys``) of the held-out fold; None where the model was
        trained on all questions of its data. learnt: hashes of the question texts that it was trained on.
    """

    folder: Path
    held_out: frozenset[str] | None
    learnt: frozenset[str]

    def may_score(self, key: str, text: str) -> bool:
        """Return whether a question is held out, or, for a model trained on all of its data, not among them."""
        return key in self.held_out if self.held_out is not None else text not in self.learnt


def write(folder: Path, content: dict[str, Any]) -> None:
    """Write the record into the folder of a model, as its last file."""
    write_json(folder / FILE, {"format": FORMAT, **content})


def read(folder: Path) -> TrainingRecord:
    """Read the record of a model; raise MemlabError if there is none, or it cannot be read."""
    fix = "train one with python -m memlab.learn.reranker; rank/rerank=cross_encoder takes models from elsewhere"
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}, expected {FORMAT}")
        held_out = None if content["fold"] == "all" else _texts(content["held_out"], "held_out")
        return TrainingRecord(folder, held_out, _texts(content["learnt"], "learnt"))
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(folder / FILE), fix=fix) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise MemlabError(f"is not a reranker's record: {reason}", where=str(folder / FILE), fix=fix) from error


def _texts(value: object, name: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{name} is no list of texts")
    return frozenset(value)
