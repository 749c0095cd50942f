"""Expected calibration error of a learned probability, from the bins of its reliability curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memlab.text.display import is_number


def complete_bins(bins: Iterable[object]) -> list[Mapping[str, Any]]:
    """Return the bins that have numbers for ``estimated`` and ``observed``."""
    return [b for b in bins if isinstance(b, Mapping)
            and is_number(b.get("estimated")) and is_number(b.get("observed"))]


def calibration_error(bins: Iterable[object]) -> float | None:
    """Return the mean over cases of |estimated - observed| of their bin; None without a bin.

    Naeini, Cooper, Hauskrecht: Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015.

    >>> calibration_error([{"estimated": .2, "observed": .3, "n": 3}, {"estimated": .9, "observed": .7, "n": 1}])
    0.125
    """
    rows = [(b["estimated"], b["observed"], b.get("n") or 1) for b in complete_bins(bins)]
    total = sum(n for *_, n in rows)
    return sum(abs(estimated - observed) * n for estimated, observed, n in rows) / total if total else None
