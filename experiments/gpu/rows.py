"""Rows of a check of a card: what was checked or measured, whether it is right, and what to do if it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from memlab.support.errors import MemlabError

State = Literal["ok", "off", "skipped"]
Part = Literal["rates", "agreement", "speed"]

PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}


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


def agreement_row(name: str, result: str, right: bool, advice: str, **numbers: float) -> Row:
    """Return a row that is ok, or off with what to do."""
    return Row("agreement", name, result, "ok" if right else "off", advice="" if right else advice, numbers=numbers)


def row_of(part: Part, name: str, check: Callable[[], Row]) -> Row:
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
    """Return a rate: bytes and operations with a unit prefix, counts as numbers.

    >>> rate(1.5e9, "products/s"), rate(7467.2, "texts/s"), rate(7.9e14, "FLOP/s"), rate(4.24e12, "B/s")
    ('1.5 billion products/s', '7,467 texts/s', '790 TFLOP/s', '4.24 TB/s')
    """
    if unit in ("FLOP/s", "B/s"):
        size, prefix = next(((size, prefix) for prefix, size in PREFIXES.items() if number >= size), (1.0, ""))
        return f"{number / size:.3g} {prefix}{unit}"
    if number >= 1e9:
        return f"{number / 1e9:.3g} billion {unit}"
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
