"""The comparison of an experiment's arms, as comparison.json holds it: plain values, finite or null."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from memlab.evaluate.answers import judges
from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.noop import OUTPUTS, identical
from memlab.evaluate.statistics import holm
from memlab.evaluate.summary import headline, summary
from memlab.evaluate.verbalise import sentence

ALPHA = 0.05


@dataclass(frozen=True)
class Finished:
    """What a finished arm brings: its frames (questions.parquet, ranking.parquet, context.parquet), place and time."""

    questions: pl.DataFrame
    ranking: pl.DataFrame | None = None
    context: pl.DataFrame | None = None
    answers: pl.DataFrame | None = None
    folder: str = ""
    seconds: float | None = None


def compare(experiment: str, data: str, arms: Mapping[str, Finished], contrasts: Sequence[Contrast], *,
            clustered: bool, notes: Sequence[str] = (), missing: Sequence[str] = (),
            constant_k: Mapping[str, Any] | None = None, seed: int = 0) -> dict[str, Any]:
    """Compare finished arms; return the content of comparison.json.

    ``clustered`` says that questions come from shared conversations (column ``corpus``). ``missing`` names arms
    of the experiment without a finished run. Holm's correction counts every declared contrast, with p = 1 for one
    that cannot be tested, so that a run that ends later changes no other verdict for the worse.
    """
    step = ALPHA / max(len(contrasts), 1)
    noop = {(arm, other): same for arm, other in _pairs(arms, contrasts)
            if (same := _identical(arms[arm], arms[other])) is not None}
    declared = [_row(arms, c, clustered, step, seed) for c in contrasts]
    for row, adjusted in zip(declared, holm([1.0 if row["p"] is None else row["p"] for row in declared])):
        row["p_adjusted"] = None if row["p"] is None else adjusted
        row["verdict"] = _verdict(row, arms, noop)
        if row["verdict"] == "out of reach":  # computed for a test that could find something
            row["power"] = row["smallest_detectable"] = None
        row["words"] = sentence(row, step)
    exploratory = [row for c in _exploratory(arms, contrasts)
                   if (row := _row(arms, c, clustered, ALPHA, seed, declared=False))["p"] is not None]
    for row in exploratory:
        unmoved = noop.get((row["arm"], row["comparator"])) == list(OUTPUTS)
        row["verdict"] = "changed nothing" if unmoved else "exploratory"
        row["words"] = sentence(row, ALPHA)
    named = {name for c in contrasts for name in (c.arm, c.against)}
    made = {
        "experiment": experiment, "data": data, "clustered": clustered,
        "questions": max((f.questions.height for f in arms.values()), default=0),
        "scored": max((int(f.questions["scored"].sum()) for f in arms.values()), default=0),
        "notes": [*notes, *_notes(arms, clustered, len(contrasts), step)],
        "arms": {name: _arm(found, clustered, seed) for name, found in arms.items()},
        "contrasts": declared, "exploratory": exploratory,
        "noop": [{"arm": a, "comparator": b, "identical": same} for (a, b), same in noop.items() if same],
        "answered": any(judges(f.questions.columns) for f in arms.values()),
        "constant_k": dict(constant_k or {}), "missing": sorted({*missing, *named} - set(arms)),
    }
    return _finite(made)  # type: ignore[no-any-return]


def _arm(found: Finished, clustered: bool, seed: int) -> dict[str, Any]:
    metrics = summary(found.questions, clustered, seed)
    return {"folder": found.folder, "metrics": metrics, "seconds": found.seconds,
            "tokens_mean": metrics.get("context/tokens_mean", {}).get("value"),
            "selected_k_mean": metrics.get("selected/k_mean", {}).get("value")}


def _row(arms: Mapping[str, Finished], contrast: Contrast, clustered: bool, alpha: float, seed: int,
         declared: bool = True) -> dict[str, Any]:
    nothing = pl.DataFrame(schema={"question": pl.Int32, "corpus": pl.Int32, "category": pl.String,
                                   "label_error": pl.String})
    one, two = (arms[name].questions if name in arms else nothing for name in (contrast.arm, contrast.against))
    return measure(contrast, one, two, clustered=clustered, alpha=alpha, seed=seed, declared=declared)


def _verdict(row: dict[str, Any], arms: Mapping[str, Finished], noop: Mapping[tuple[str, str], list[str]]) -> str:
    if row["arm"] not in arms:
        return "no arm"
    if row["comparator"] not in arms:
        return "no comparator"
    if noop.get((row["arm"], row["comparator"])) == list(OUTPUTS):
        return "changed nothing"
    if row["p"] is None:
        return "undefined"
    if row["p_adjusted"] <= ALPHA:
        return "shown" if (row["difference"] > 0) == (row["direction"] == "greater") else "opposite"
    return "not shown" if row["reachable"] else "out of reach"


def _pairs(arms: Mapping[str, Finished], contrasts: Sequence[Contrast]) -> list[tuple[str, str]]:
    """Pair every arm with what it is compared with: its declared comparators, its twin, or the baseline.

    An arm named as another with something taken out or put in (``whole-rerank``, ``plain+rerank``) is compared with
    that one.
    """
    declared = [(c.arm, c.against) for c in contrasts if c.arm in arms and c.against in arms]
    bases = [c.against for c in contrasts if c.comparator != "twin" and c.against in arms] or list(arms)
    for arm in arms:
        if arm.endswith(".twin") or arm in {a for a, _ in declared}:
            continue
        base = f"{arm}.twin" if f"{arm}.twin" in arms else _stem(arm, arms) or bases[0]
        if base != arm:
            declared.append((arm, base))
    return list(dict.fromkeys(declared))


def _stem(arm: str, arms: Mapping[str, Finished]) -> str | None:
    """Return the longest other arm that this one's name begins with, before a + or -."""
    return max((a for a in arms if arm.startswith((f"{a}+", f"{a}-"))), key=len, default=None)


def _exploratory(arms: Mapping[str, Finished], contrasts: Sequence[Contrast]) -> list[Contrast]:
    known = {(c.arm, c.against, c.metric) for c in contrasts}
    columns = list(dict.fromkeys(name for found in arms.values() for name in found.questions.columns))
    metrics = list(dict.fromkeys([*(c.metric for c in contrasts), *headline(columns)]))
    return [Contrast(arm, base, metric, "less" if metric.startswith("context/tokens") else "greater")
            for arm, base in _pairs(arms, contrasts) for metric in metrics if (arm, base, metric) not in known]


def _identical(one: Finished, other: Finished) -> list[str] | None:
    if one.ranking is None or other.ranking is None or one.context is None or other.context is None:
        return None
    return identical(one.ranking, one.context, other.ranking, other.context, one.answers, other.answers)


def _notes(arms: Mapping[str, Finished], clustered: bool, tests: int, step: float) -> list[str]:
    notes = ["Intervals are 95 % and not corrected; p-values are two-sided."]
    if tests > 1:
        notes.append(f"Holm's correction over {tests} declared contrasts: the smallest p must be at most {step:.4f}. "
                     "All other comparisons are exploratory.")
    if clustered:
        count = max((f.questions["corpus"].n_unique() for f in arms.values()), default=0)
        notes.append(f"Questions of one conversation are not independent: effects are tested over {count} "
                     "conversations, each weighing the same.")
    if len({tuple(f.questions["question"].sort()) for f in arms.values()}) > 1:
        notes.append("Arms were run on different questions: each contrast uses those that both arms have.")
    return notes


def _finite(value: Any) -> Any:
    """Replace what JSON cannot hold: numpy numbers by Python's, NaN and infinities by null."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
