"""The comparison of an experiment's arms, as comparison.json holds it: plain values, finite or null."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import polars as pl

from memlab.evaluate.answers import judge_columns
from memlab.evaluate.constant_k import CurvePoint
from memlab.evaluate.contrast import Contrast, ContrastResult, measure
from memlab.evaluate.noop import OUTPUTS, identical
from memlab.evaluate.statistics import holm
from memlab.evaluate.summary import Estimate, headline, summary
from memlab.evaluate.verbalise import sentence

ALPHA = 0.05
"""A declared difference is shown where its adjusted p is at most this."""


@dataclass(frozen=True)
class ArmResult:
    """A finished arm: its frames (questions.parquet, ranking.parquet, ...), folder, time, and whether it saw gold."""

    questions: pl.DataFrame
    ranking: pl.DataFrame | None = None
    context: pl.DataFrame | None = None
    answers: pl.DataFrame | None = None
    folder: str = ""
    seconds: float | None = None
    oracle: bool = False
    tainted: bool = False


class ArmSummary(TypedDict):
    """One arm of a comparison; ``metrics`` has the names of metrics.json."""

    folder: str
    metrics: dict[str, Estimate]
    seconds: float | None
    tokens_mean: float | None
    selected_k_mean: float | None
    oracle: bool
    tainted: bool


class SameOutputs(TypedDict):
    """Two arms, and the outputs (of ``OUTPUTS``) in which they are identical."""

    arm: str
    comparator: str
    identical: list[str]


class Comparison(TypedDict):
    """The content of comparison.json."""

    experiment: str
    data: str
    clustered: bool
    questions: int
    scored: int
    notes: list[str]
    arms: dict[str, ArmSummary]
    contrasts: list[ContrastResult]
    exploratory: list[ContrastResult]
    noop: list[SameOutputs]
    answered: bool
    constant_k: dict[str, list[CurvePoint]]
    missing: list[str]


def compare(experiment: str, data: str, arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast], *,
            clustered: bool, notes: Sequence[str] = (), missing: Sequence[str] = (),
            constant_k: Mapping[str, list[CurvePoint]] | None = None, seed: int = 0) -> Comparison:
    """Compare finished arms; return the content of comparison.json.

    ``clustered``: whether questions come from shared conversations (column ``corpus``). ``missing`` names arms of
    the experiment without a finished run. Holm's correction counts every declared contrast, with p = 1 for one that
    cannot be tested, so that a run that ends later changes no other verdict for the worse.
    """
    step = ALPHA / max(len(contrasts), 1)
    same_outputs = {(arm, other): outputs for arm, other in _pairs(arms, contrasts)
                    if (outputs := _identical(arms[arm], arms[other])) is not None}
    declared = [_row(arms, c, clustered, step, seed) for c in contrasts]
    for row, adjusted in zip(declared, holm([1.0 if row["p"] is None else row["p"] for row in declared])):
        row["p_adjusted"] = None if row["p"] is None else adjusted
        row["verdict"] = _verdict(row, arms, same_outputs)
        if row["verdict"] == "out of reach":  # computed for a test that could find something
            row["power"] = row["smallest_detectable"] = None
        row["words"] = sentence(row, step)
    exploratory = [row for c in _exploratory(arms, contrasts)
                   if (row := _row(arms, c, clustered, ALPHA, seed, declared=False))["p"] is not None]
    for row in exploratory:
        unchanged = same_outputs.get((row["arm"], row["comparator"])) == list(OUTPUTS)
        row["verdict"] = "changed nothing" if unchanged else "exploratory"
        row["words"] = sentence(row, ALPHA)
    named = {name for c in contrasts for name in (c.arm, c.against)}
    comparison: Comparison = finite({
        "experiment": experiment, "data": data, "clustered": clustered,
        "questions": max((arm.questions.height for arm in arms.values()), default=0),
        "scored": max((int(arm.questions["scored"].sum()) for arm in arms.values()), default=0),
        "notes": [*notes, *_notes(arms, clustered, len(contrasts), step)],
        "arms": {name: _summary(arm, clustered, seed) for name, arm in arms.items()},
        "contrasts": declared, "exploratory": exploratory,
        "noop": [{"arm": a, "comparator": b, "identical": outputs} for (a, b), outputs in same_outputs.items()
                 if outputs],
        "answered": any(judge_columns(arm.questions.columns) for arm in arms.values()),
        "constant_k": dict(constant_k or {}), "missing": sorted({*missing, *named} - set(arms)),
    })
    return comparison


def _summary(arm: ArmResult, clustered: bool, seed: int) -> ArmSummary:
    metrics = summary(arm.questions, clustered, seed)
    tokens, k = (metrics[name]["value"] if name in metrics else None
                 for name in ("context/tokens_mean", "selected/k_mean"))
    return {"folder": arm.folder, "metrics": metrics, "seconds": arm.seconds, "tokens_mean": tokens,
            "selected_k_mean": k, "oracle": arm.oracle, "tainted": arm.tainted}


def _row(arms: Mapping[str, ArmResult], contrast: Contrast, clustered: bool, alpha: float, seed: int,
         declared: bool = True) -> ContrastResult:
    empty = pl.DataFrame(schema={"question": pl.Int32, "corpus": pl.Int32, "category": pl.String,
                                 "label_error": pl.String})
    one, two = (arms[name].questions if name in arms else empty for name in (contrast.arm, contrast.against))
    return measure(contrast, one, two, clustered=clustered, alpha=alpha, seed=seed, declared=declared)


def _verdict(row: ContrastResult, arms: Mapping[str, ArmResult],
             same_outputs: Mapping[tuple[str, str], list[str]]) -> str:
    if row["arm"] not in arms:
        return "no arm"
    if row["comparator"] not in arms:
        return "no comparator"
    if same_outputs.get((row["arm"], row["comparator"])) == list(OUTPUTS):
        return "changed nothing"
    if row["p_adjusted"] is None or row["difference"] is None:
        return "undefined"
    if row["p_adjusted"] <= ALPHA:
        return "shown" if (row["difference"] > 0) == (row["direction"] == "greater") else "opposite"
    return "not shown" if row["reachable"] else "out of reach"


def _pairs(arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast]) -> list[tuple[str, str]]:
    """Pair every arm with what it is compared with: its declared comparators, its twin, or the baseline.

    An arm named as another with something taken out or put in (``whole-rerank``, ``plain+rerank``) is compared with
    that one.
    """
    pairs = [(c.arm, c.against) for c in contrasts if c.arm in arms and c.against in arms]
    declared = {arm for arm, _ in pairs}
    bases = [c.against for c in contrasts if c.comparator != "twin" and c.against in arms] or list(arms)
    for arm in arms:
        if arm.endswith(".twin") or arm in declared:
            continue
        base = f"{arm}.twin" if f"{arm}.twin" in arms else _stem(arm, arms) or bases[0]
        if base != arm:
            pairs.append((arm, base))
    return list(dict.fromkeys(pairs))


def _stem(arm: str, arms: Mapping[str, ArmResult]) -> str | None:
    """Return the longest other arm that this one's name begins with, before a + or -."""
    return max((a for a in arms if arm.startswith((f"{a}+", f"{a}-"))), key=len, default=None)


def _exploratory(arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast]) -> list[Contrast]:
    declared = {(c.arm, c.against, c.metric) for c in contrasts}
    columns = list(dict.fromkeys(name for arm in arms.values() for name in arm.questions.columns))
    metrics = list(dict.fromkeys([*(c.metric for c in contrasts), *headline(columns)]))
    return [Contrast(arm, base, metric, "less" if metric.startswith("context/tokens") else "greater")
            for arm, base in _pairs(arms, contrasts) for metric in metrics if (arm, base, metric) not in declared]


def _identical(one: ArmResult, other: ArmResult) -> list[str] | None:
    if one.ranking is None or other.ranking is None or one.context is None or other.context is None:
        return None
    return identical(one.ranking, one.context, other.ranking, other.context, one.answers, other.answers)


def _notes(arms: Mapping[str, ArmResult], clustered: bool, tests: int, step: float) -> list[str]:
    notes = ["Intervals are 95 % and not corrected; p-values are two-sided."]
    if tests > 1:
        notes.append(f"Holm's correction over {tests} declared contrasts: the smallest p must be at most {step:.4f}. "
                     "All other comparisons are exploratory.")
    if clustered:
        count = max((arm.questions["corpus"].n_unique() for arm in arms.values()), default=0)
        notes.append(f"Questions of one conversation are not independent: effects are tested over {count} "
                     "conversations, each weighing the same.")
    if len({tuple(arm.questions["question"].sort()) for arm in arms.values()}) > 1:
        notes.append("Arms were run on different questions: each contrast uses those that both arms have.")
    return notes


def finite(value: Any) -> Any:
    """Replace what JSON cannot hold: numpy numbers by Python's, NaN and infinities by null."""
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
