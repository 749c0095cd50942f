"""Metrics in words, and their values and differences in one unit each: shares in percent, differences in points."""

from __future__ import annotations

import re
from typing import Any

from memlab.evaluate.curves import METRIC as CURVE
from memlab.evaluate.evidence import PREFIX
from memlab.support.text.display import EMPTY, format_count, format_interval, format_number, format_signed, is_number

_LABELS = {"recall_all": "all evidence", "recall_any": "some evidence", "recall": "share of evidence",
           "ndcg": "nDCG", "mrr": "MRR"}
_SHARES = ("recall", "refused", "shown", "newest")


def base(metric: str) -> str:
    """Return the metric that a curve of it is made of; other metrics stay as they are.

    >>> base("curve/selected/turn/recall_all"), base("turn/mrr@10")
    ('selected/turn/recall_all', 'turn/mrr@10')
    """
    return metric.removeprefix(CURVE)


def label(metric: str) -> str:
    """Return a metric in words; names without words stay as they are.

    >>> label("selected/turn/recall_all"), label("session/recall_any@5"), label("turn/ndcg@10"), label("answer/f1")
    ('all evidence shown, turns', 'some evidence in top 5, sessions', 'nDCG@10, turns', 'answers right, f1')
    >>> label("within_1000/turn/recall_all"), label("round/recall@10")
    ('all evidence within 1,000 tokens, turns', 'share of evidence in top 10, rounds')
    """
    if metric.startswith(PREFIX):
        return f"answers right, {metric.removeprefix(PREFIX)}"
    match = re.fullmatch(r"(?:(selected)/|within_(\d+)/)?(session|turn|round)/([a-z_]+)(?:@(\d+))?", base(metric))
    if match is None or match[4] not in _LABELS:
        return metric
    selected, tokens, level, measure, k = match.groups()
    if measure in ("ndcg", "mrr"):
        return f"{_LABELS[measure]}{f'@{k}' if k else ''}, {level}s"
    where = f" within {int(tokens):,} tokens" if tokens else " shown" if selected else f" in top {k}" if k else ""
    return f"{_LABELS[measure]}{where}, {level}s"


def is_cost(metric: str) -> bool:
    """Return whether a metric is an amount (tokens, K), whose differences share no scale with those of rates."""
    return metric.rpartition("/")[2].removesuffix("_mean") in ("tokens", "k")


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of questions, evidence or answers, which is written in percent.

    >>> is_share("selected/turn/recall_all"), is_share("turn/ndcg@10"), is_share("answer/prompt_tokens_mean")
    (True, False, False)
    """
    last = metric.rpartition("/")[2]
    return last.startswith(_SHARES) or metric.startswith(PREFIX) and not last.endswith(("_mean", "_tokens"))


def write(metric: str, value: Any) -> str:
    """Return a value of a metric in its unit.

    >>> write("selected/turn/recall_all", .9458), write("turn/ndcg@10", .8381), write("context/tokens_mean", 502.3)
    ('94.6 %', '0.838', '502')
    """
    if not is_number(value):
        return EMPTY
    if is_cost(metric):
        return format_count(value)
    return f"{100 * value:.1f} %" if is_share(metric) else format_number(float(value))


def write_interval(metric: str, low: Any, high: Any) -> str:
    """Return an interval of a metric's values, without its unit.

    >>> write_interval("selected/turn/recall_all", .92, .9719)
    '92.0 to 97.2'
    """
    return format_interval(low, high, lambda value: write(metric, value).removesuffix(" %"))


def difference(metric: str, value: Any, unit: bool = True) -> str:
    """Return a difference of two values with its sign: points (hundredths), or for an amount its own unit.

    >>> difference("turn/ndcg@10", .0312), difference("context/tokens", -120.4), difference("turn/mrr", None)
    ('+3.1 points', '−120.4 tokens', '–')
    """
    if not is_number(value):
        return EMPTY
    if not is_cost(metric):
        return format_signed(100 * value, 1) + " points" * unit
    name = "tokens" if metric.removesuffix("_mean").endswith("tokens") else "units"
    return format_signed(value, 1) + f" {name}" * unit


def difference_interval(metric: str, low: Any, high: Any) -> str:
    """Return the interval of a difference, without its unit; "" if an end is missing.

    >>> difference_interval("turn/ndcg@10", -.0012, .0312)
    '−0.1 to +3.1'
    """
    return format_interval(low, high, lambda value: difference(metric, value, unit=False))

