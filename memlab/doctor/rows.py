"""Rows of a check of a card: what was checked or measured, whether it is right, and what to do if it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from memlab.errors import MemlabError

State = Literal["ok", "off", "skipped"]
Part = Literal["rates", "agreement", "speed"]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        part: "rates" of the device, "agreement" with the CPU, or "speed".
        name: What was checked.
        result: What came out, in words.
        state: Whether that is as it should be.
        share: The share of the device's own rate, in words; "" where there is none.
        beside: The same work done by another library, in words.
        advice: What to do if the row is off, or how to have it if it was skipped.
        numbers: The same results as numbers, for the file; units stand in the names.
    """

    part: Part
    name: str
    result: str
    state: State = "ok"
    share: str = ""
    beside: str = ""
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


def judged(part: Part, name: str, result: str, right: bool, advice: str, **numbers: float) -> Row:
    """Return a row that is ok, or off with what to do."""
    return Row(part, name, result, "ok" if right else "off", advice="" if right else advice, numbers=numbers)


def attempted(part: Part, name: str, check: Callable[[], Row]) -> Row:
    """Return the row of a check; one that fails is off and says how, so that the other rows are still made."""
    import torch

    try:
        return check()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return Row(part, name, "the device ran out of memory", "off",
                   advice="end other programs on this card (nvidia-smi), or size=small")
    except MemlabError as error:
        return Row(part, name, error.what, "off", advice=error.fix)
    except Exception as error:  # whatever a driver or a library raises is a finding
        return Row(part, name, f"{type(error).__name__}: {str(error).strip().split(chr(10))[0][:160]}", "off",
                   advice="run with PYTHONFAULTHANDLER=1 and report it with the output of `memlab doctor`")


def rate(number: float, unit: str) -> str:
    """Return a rate with three digits and a prefix.

    >>> rate(1234567.0, "products/s"), rate(12.345, "pairs/s"), rate(7.9e14, "FLOP/s")
    ('1.23 M products/s', '12.3 pairs/s', '790 T FLOP/s')
    """
    for prefix, size in (("P ", 1e15), ("T ", 1e12), ("G ", 1e9), ("M ", 1e6), ("k ", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}"
