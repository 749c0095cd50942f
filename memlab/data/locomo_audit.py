"""The audit of LoCoMo's labels: which gold answers or citations are wrong.

A JSON list of ``{sample_id, index, error_type, question, ...}``, as made from the locomo-audit repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memlab.data import readers


@dataclass(frozen=True)
class Audit:
    """What an audit says of one question; its wording guards against an audit of another release."""

    question: str
    error: str


def label_errors(path: Path) -> dict[tuple[str, int], Audit]:
    """Read an audit as (sample_id, index of the question) -> finding."""
    found = {}
    for number, record in enumerate(readers.records(path)):
        where = f"{path}, record {number}"
        key = (readers.need(record, "sample_id", str, where), readers.need(record, "index", int, where))
        found[key] = Audit(readers.need(record, "question", str, where), readers.need(record, "error_type", str, where))
    return found
