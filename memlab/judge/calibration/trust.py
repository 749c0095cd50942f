"""What is known of the judges whose scores a report shows: their calibration, or that there is none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memlab.judge.calibration.calibrate import LEAST, flagged, leaning
from memlab.text.display import format_number, one_line

FILE = "calibration.json"
"""Lies in the root of the runs, where ``python -m memlab.judge.calibrate`` writes it unless told otherwise."""


def doubts(judges: Iterable[str], path: Path) -> list[str]:
    """Say, a judge, what stands against its scores; nothing of one whose specificity is known and high enough.

    A judge of another configuration under the same name cannot be told apart here: names are what people give.
    """
    known = _read(path)
    said = []
    for judge in judges:
        found = known.get(judge, {})
        specificity = (found.get("specificity") or {}).get("value")
        name = one_line(judge)
        if specificity is None:
            said.append(f"FLAGGED: nobody has measured how many wrong answers the judge {name} lets through: "
                        f"python -m memlab.judge.calibrate --judge {name} ...")
        elif flagged(specificity, LEAST):
            said.append(f"FLAGGED: the judge {name} calls {format_number(1 - specificity)} of made-up wrong answers "
                        f"right (specificity {format_number(specificity)} on {one_line(str(found.get('data', '')))}, "
                        f"at least {LEAST:g} is wanted): accuracies by it are "
                        f"{leaning(specificity, (found.get('sensitivity') or {}).get('value'))}.")
    return said


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        judges = content["judges"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {k: v for k, v in judges.items() if isinstance(v, dict)} if isinstance(judges, dict) else {}
