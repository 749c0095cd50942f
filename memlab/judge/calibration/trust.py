"""Trust in a judge: the warnings that reports show beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError
from memlab.text.display import format_number, is_number, one_line

CALIBRATION_FILE = "calibration.json"
"""The file in the root of the runs that ``python -m memlab.judge.calibrate`` writes by default."""

MIN_SPECIFICITY = 0.9
"""A judge that lets more than one wrong answer in ten pass inflates every accuracy that it is used for."""


OWN_WORDS = {"longmemeval_style": "LongMemEval's", "memorystack": "MemoryStack's"}
"""Judges that follow a published rule in memlab's own words, and whose rule it is."""


def needs_warning(specificity: float | None) -> bool:
    """Return whether a judge's specificity is unknown, or too low to show its accuracies without a warning.

    >>> needs_warning(.84), needs_warning(.95), needs_warning(None)
    (True, False, True)
    """
    return specificity is None or specificity < MIN_SPECIFICITY


def bias(specificity: float | None, sensitivity: float | None) -> str:
    """Describe the direction in which a judge's accuracies are biased.

    If a share a of the answers is right, the judge calls a * sensitivity + (1 - a) * (1 - specificity) of them right.
    The two kinds of error cancel out at a = (1 - specificity) / (2 - specificity - sensitivity).

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
    """Return a warning for each judge whose specificity in a calibration file is missing or too low.

    Judges with a published rule in memlab's own words (``OWN_WORDS``) get a warning of their own before it.

    A judge is looked up by its name alone: two configurations with the same name cannot be told apart.
    """
    judges, warnings = list(judges), []
    try:
        calibrated = read_judges(path)
    except MemlabError as error:
        calibrated, warnings = {}, [f"FLAGGED: {one_line(str(error))}."] if judges else []
    for judge in judges:
        figures, name = calibrated.get(judge, {}), one_line(judge)
        specificity, sensitivity = (_share(figures.get(key)) for key in ("specificity", "sensitivity"))
        if judge in OWN_WORDS:
            warnings.append(f"Judge {name}: {OWN_WORDS[judge]} rules in memlab's own words; its accuracies cannot be "
                            "compared with published ones.")
        if specificity is None:
            warnings.append(f"FLAGGED: nobody has measured how many wrong answers the judge {name} lets through: "
                            f"python -m memlab.judge.calibrate --judge {name} ...")
        elif needs_warning(specificity):
            warnings.append(f"FLAGGED: the judge {name} calls {format_number(1 - specificity)} of synthetic wrong "
                            f"answers right (specificity {format_number(specificity)} on "
                            f"{one_line(str(figures.get('data', '')))}, at least {MIN_SPECIFICITY:g} is wanted): "
                            f"accuracies by it are {bias(specificity, sensitivity)}.")
    return warnings


def _share(figure: object) -> float | None:
    """Return the value of a figure; None if it is no number from 0 to 1."""
    value = figure.get("value") if isinstance(figure, dict) else None
    return float(value) if is_number(value) and 0 <= value <= 1 else None


def read_judges(path: Path) -> dict[str, dict[str, Any]]:
    """Return each judge's figures in a calibration file; {} where there is no file.

    Raises MemlabError for a file that cannot be read: the figures of all judges are in it.
    """
    try:
        judges = json.loads(path.read_text(encoding="utf-8"))["judges"]
        if not isinstance(judges, dict) or not all(isinstance(figures, dict) for figures in judges.values()):
            raise TypeError("'judges' is not an object of objects")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise MemlabError(f"the calibration of judges cannot be read ({one_line(error)[:120]})", where=path.name,
                          fix=f"repair {path.name}, or move it away and calibrate again") from error
    return judges
