"""Trust in a judge: the warnings that reports show beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memlab.text.display import format_number, one_line

CALIBRATION_FILE = "calibration.json"
"""Lies in the root of the runs, where ``python -m memlab.judge.calibrate`` writes it by default."""

MIN_SPECIFICITY = 0.9
"""A judge that lets more than one wrong answer in ten pass inflates every accuracy that it is used for."""


def flagged(specificity: float | None) -> bool:
    """Return whether a judge's specificity is unknown, or too low to show its accuracies without a warning.

    >>> flagged(.84), flagged(.95), flagged(None)
    (True, False, True)
    """
    return specificity is None or specificity < MIN_SPECIFICITY


def bias(specificity: float | None, sensitivity: float | None) -> str:
    """Return in words in which direction a judge's accuracies are off.

    Where a share a of the answers is right, a judge calls a * sensitivity + (1 - a) * (1 - specificity) right. That
    is a itself where both its errors balance: at (1 - specificity) / (2 - specificity - sensitivity).

    >>> bias(.86, 1.0), bias(None, .9)
    ('too high', 'not to be trusted')
    >>> bias(.86, .59)
    'too high where fewer than 25 % of the answers are right, and too low where more are'
    """
    if specificity is None or sensitivity is None:
        return "not to be trusted"
    errors = 2 - specificity - sensitivity
    balance = round(100 * (1 - specificity) / errors) if errors else 100
    return "too high" if balance >= 100 else (
        f"too high where fewer than {balance} % of the answers are right, and too low where more are")


def judge_warnings(judges: Iterable[str], path: Path) -> list[str]:
    """Return the warning for each judge whose specificity, by a calibration file, is unknown or too low.

    Judges are identified by name alone: two configurations with one name cannot be distinguished.
    """
    calibrated = _read(path)
    warnings = []
    for judge in judges:
        figures, name = calibrated.get(judge, {}), one_line(judge)
        specificity, sensitivity = ((figures.get(key) or {}).get("value") for key in ("specificity", "sensitivity"))
        if specificity is None:
            warnings.append(f"FLAGGED: nobody has measured how many wrong answers the judge {name} lets through: "
                            f"python -m memlab.judge.calibrate --judge {name} ...")
        elif flagged(specificity):
            warnings.append(f"FLAGGED: the judge {name} calls {format_number(1 - specificity)} of synthetic wrong "
                            f"answers right (specificity {format_number(specificity)} on "
                            f"{one_line(str(figures.get('data', '')))}, at least {MIN_SPECIFICITY:g} is wanted): "
                            f"accuracies by it are {bias(specificity, sensitivity)}.")
    return warnings


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        judges = json.loads(path.read_text(encoding="utf-8"))["judges"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {k: v for k, v in judges.items() if isinstance(v, dict)} if isinstance(judges, dict) else {}
