"""The comparison of an experiment's arms, as comparison.json holds it: plain values, finite or null."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

import polars as pl

from memlab.evaluate.contrast import ALPHA, OUTPUTS, Contrast, ContrastResult, measure, same_ranking, same_rows
from memlab.evaluate.curves import (
    CONSTANT,
    NAMES,
    CurvePoint,
    RulePoint,
    curve_metric,
    is_curve,
    mean_points,
    with_heights,
)
from memlab.evaluate.evidence import BUDGET, judge_columns
from memlab.evaluate.statistics import holm
from memlab.evaluate.summary import LOW_IS_BETTER, Estimate, headline, summary
from memlab.evaluate.verbalise import grouping_in_words, sentence
from memlab.evaluate.verdict import Recommendation, main_metric, verdict
from memlab.evaluate.whole import Whole


class VerdictCounts(TypedDict):
    """Numbers of answers: all, those without a verdict, and those whose verdict comes from an incomplete reply."""

    answers: int
    without: int
    incomplete: int


@dataclass(frozen=True)
class ArmResult:
    """A finished arm: its frames (questions.parquet, ranking.parquet, ...), folder, time, and whether it saw gold.

    ``verdicts`` are as in ``ArmSummary``.
    """

    questions: pl.DataFrame
    ranking: pl.DataFrame | None = None
    context: pl.DataFrame | None = None
    answers: pl.DataFrame | None = None
    curve: pl.DataFrame | None = None
    folder: str = ""
    seconds: float | None = None
    oracle: bool = False
    tainted: bool = False
    fitted: bool = False
    verdicts: Mapping[str, VerdictCounts] = field(default_factory=dict)


class ArmSummary(TypedDict):
    """One arm of a comparison; ``metrics`` has the names of metrics.json, ``seconds`` are those of its own stages.

    ``verdicts`` counts, for each judge with any such answer, the answers without a verdict and those that were judged
    by an incomplete reply.
    """

    folder: str
    metrics: dict[str, Estimate]
    seconds: float | None
    tokens_mean: float | None
    selected_k_mean: float | None
    oracle: bool
    tainted: bool
    fitted: bool
    verdicts: NotRequired[dict[str, VerdictCounts]]


class SameOutputs(TypedDict):
    """Two arms, and the outputs (of ``OUTPUTS``) in which they are identical."""

    arm: str
    comparator: str
    identical: list[str]


class Comparison(TypedDict):
    """The content of comparison.json.

    ``budget`` are the tokens at which the verdict cuts rankings that differ. ``constant_k`` has metric -> points for
    the ranking of each system, or of one where all have the same ranking. ``metric`` is the one that arms are ranked
    by, and ``whole`` says that a memory fits into what is shown of it. The report adds what only the run folders tell:
    ``whole``, the seconds of the work that all arms share, and in ``act`` (label, command to copy).
    """

    experiment: str
    data: str
    budget: int
    groups: int
    questions: int
    scored: int
    notes: list[str]
    arms: dict[str, ArmSummary]
    contrasts: list[ContrastResult]
    exploratory: list[ContrastResult]
    noop: list[SameOutputs]
    constant_k: dict[str, dict[str, list[CurvePoint]]]
    rule_curves: dict[str, dict[str, list[RulePoint]]]
    missing: list[str]
    broken: list[str]
    verdict: Recommendation | None
    metric: str | None
    whole: Whole | None
    act: list[list[str]]


def compare(experiment: str, data: str, arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast], *,
            notes: Sequence[str] = (), missing: Sequence[str] = (), broken: Sequence[str] = (),
            constant_k: Mapping[str, Mapping[str, list[CurvePoint]]] | None = None, budget: int = BUDGET,
            whole: Whole | None = None, seed: int = 0) -> Comparison:
    """Compare finished arms; return the content of comparison.json.

    ``missing`` names arms of the experiment without a finished run, ``broken`` says why run folders cannot be read.
    ``constant_k`` has the curves of the arms' rankings, and the verdict cuts rankings at ``budget`` tokens.
    Holm's correction counts every declared contrast, with p = 1 for one that cannot be tested, so that a run that ends
    later changes no other verdict for the worse. Rules that select from one ranking are compared over whole curves:
    where no such contrast is declared, each with constant K, in a family of its own.
    """
    step = ALPHA / max(len(contrasts), 1)
    same_outputs = {(arm, other): outputs for arm, other in _pairs(arms, contrasts)
                    if (outputs := identical(arms[arm], arms[other])) is not None}
    one_ranking = _one_ranking(arms)
    rules = _rules(arms) if one_ranking and not any(is_curve(c.metric) for c in contrasts) else []
    declared = [row for family in (contrasts, rules) for row in _test_family(family, arms, same_outputs, seed)]
    families = [*contrasts, *rules]
    exploratory = [row for c in _exploratory(arms, families)
                   if (row := _row(arms, c, ALPHA, seed, declared=False))["p"] is not None
                   and row["differing"]]
    for row in exploratory:
        row["verdict"] = "exploratory"
        row["words"] = sentence(row)
    named = {name for c in contrasts for name in (c.arm, c.against)} - set(NAMES)
    systems = candidates(arms)
    frames = systems or {name: arm.questions for name, arm in arms.items()}
    judged = judge_columns(list(dict.fromkeys(name for frame in frames.values() for name in frame.columns)))
    metric = main_metric(frames, families, judged, budget)
    comparison: Comparison = finite({
        "experiment": experiment, "data": data, "budget": budget, "groups": _groups(arms),
        "questions": max((arm.questions.height for arm in arms.values()), default=0),
        "scored": max((int(arm.questions["scored"].sum()) for arm in arms.values()), default=0),
        "notes": [*notes, *_notes(arms, len(contrasts), step)],
        "arms": {name: _summary(arm, seed) for name, arm in arms.items()},
        "contrasts": declared, "exploratory": exploratory,
        "noop": [{"arm": a, "comparator": b, "identical": outputs} for (a, b), outputs in same_outputs.items()
                 if outputs],
        "constant_k": {name: (constant_k or {}).get(name, {}) for name in [*systems][:1 if one_ranking else None]},
        "rule_curves": {name: mean_points(arm.curve) for name, arm in arms.items() if arm.curve is not None},
        "missing": sorted({*missing, *named} - set(arms)), "broken": list(broken),
        "verdict": verdict(systems, families, metric, budget), "metric": metric, "whole": whole,
        "act": [],
    })
    return comparison


def _test_family(contrasts: Sequence[Contrast], arms: Mapping[str, ArmResult],
            same_outputs: Mapping[tuple[str, str], list[str]], seed: int) -> list[ContrastResult]:
    """Return the rows of one family of contrasts, with Holm's correction over it."""
    rows = [_row(arms, c, ALPHA / len(contrasts), seed) for c in contrasts]
    for row, adjusted in zip(rows, holm([1.0 if row["p"] is None else row["p"] for row in rows])):
        row["p_adjusted"] = None if row["p"] is None else adjusted
        row["verdict"] = _verdict(row, arms, same_outputs)
        row["words"] = sentence(row)
    return rows


def _one_ranking(arms: Mapping[str, ArmResult]) -> bool:
    """Return whether two or more systems, and all of them, have one and the same ranking."""
    rankings = [arms[name].ranking for name in candidates(arms)]
    first = rankings[0] if len(rankings) > 1 else None
    return first is not None and all(other is not None and same_ranking(first, other) for other in rankings[1:])


def _rules(arms: Mapping[str, ArmResult]) -> list[Contrast]:
    """Return the contrast of each system that has a curve with constant K over whole curves."""
    curves = {name: arms[name].curve for name in candidates(arms)}
    return [Contrast(name, CONSTANT, curve_metric(curve)) for name, curve in curves.items() if curve is not None]


def candidates(arms: Mapping[str, ArmResult]) -> dict[str, pl.DataFrame]:
    """Return the frames of the arms that may be recommended: no oracles, tainted arms and token-matched baselines."""
    return {name: arm.questions for name, arm in arms.items()
            if not (arm.oracle or arm.tainted or name.endswith(".twin"))}


def _groups(arms: Mapping[str, ArmResult]) -> int:
    """Count the independent groups of the questions that count."""
    return max((arm.questions.filter("scored")["group"].n_unique() for arm in arms.values()), default=0)


def _summary(arm: ArmResult, seed: int) -> ArmSummary:
    metrics = summary(arm.questions, seed)
    tokens, k = (metrics[name]["value"] if name in metrics else None
                 for name in ("context/tokens_mean", "selected/k_mean"))
    found: ArmSummary = {
        "folder": arm.folder, "metrics": metrics, "seconds": arm.seconds, "tokens_mean": tokens,
        "selected_k_mean": k, "oracle": arm.oracle, "tainted": arm.tainted, "fitted": arm.fitted}
    return {**found, "verdicts": {**arm.verdicts}} if arm.verdicts else found


def _row(arms: Mapping[str, ArmResult], contrast: Contrast, alpha: float, seed: int,
         declared: bool = True) -> ContrastResult:
    empty = pl.DataFrame(schema={"question": pl.Int32, "group": pl.Int64, "category": pl.String,
                                 "label_error": pl.String})
    one, two = (arms[name].questions if name in arms else empty for name in (contrast.arm, contrast.against))
    tokens = None
    if is_curve(contrast.metric):
        curves = [arms[name].curve if name in arms else None for name in (contrast.arm, contrast.against)]
        known = contrast.comparator in NAMES or curves[1] is not None
        heights = with_heights(contrast, one, *curves) if known else None
        one, two, tokens = heights or (empty, empty, None)
    row = measure(contrast, one, two, alpha=alpha, seed=seed, declared=declared)
    if tokens:
        row |= {"tokens": list(tokens), "wins": None, "losses": None, "ties": None}  # a height is no win or loss
    return row


def _verdict(row: ContrastResult, arms: Mapping[str, ArmResult],
             same_outputs: Mapping[tuple[str, str], list[str]]) -> str:
    if row["arm"] not in arms:
        return "no arm"
    if row["comparator"] not in arms and row["comparator"] not in NAMES:
        return "no comparator"
    if same_outputs.get((row["arm"], row["comparator"])) == list(OUTPUTS):
        return "changed nothing"
    if row["difference"] is None:
        return "undefined"
    as_claimed = (row["difference"] > 0) == (row["direction"] == "greater")
    if row["p_adjusted"] is not None and row["p_adjusted"] <= ALPHA:
        return "shown" if as_claimed else "opposite"
    return "likely" if as_claimed and row["p"] is not None and row["p"] <= ALPHA else "open"


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
    curves = [(name, CONSTANT, curve_metric(arm.curve)) for name, arm in arms.items() if arm.curve is not None]
    pairs = [(arm, base, metric) for arm, base in _pairs(arms, contrasts) for metric in metrics if not is_curve(metric)]
    return [Contrast(arm, base, metric, "less" if metric.startswith(LOW_IS_BETTER) else "greater")
            for arm, base, metric in curves + pairs if (arm, base, metric) not in declared]


def identical(one: ArmResult, other: ArmResult) -> list[str] | None:
    """Return the outputs, of ``OUTPUTS``, that are the same in two arms; None where an arm's frames are not known.

    Rankings are the same if every rank holds the same unit; scores are not compared. Contexts are the same if they show
    the same texts in the same order. Where neither arm has a reader, their answers count as the same.
    """
    if one.ranking is None or other.ranking is None or one.context is None or other.context is None:
        return None
    same = {"ranking": same_ranking(one.ranking, other.ranking),
            "selection": same_rows(one.ranking.filter("selected"), other.ranking.filter("selected"),
                                   ["question", "unit"]),
            "context": same_rows(one.context, other.context, ["question", "position", "text_id"]),
            "answers": one.answers is other.answers is None or one.answers is not None and other.answers is not None
            and same_rows(one.answers, other.answers, ["question", "sample", "text"])}
    return [name for name in OUTPUTS if same[name]]


def _notes(arms: Mapping[str, ArmResult], tests: int, step: float) -> list[str]:
    notes = ["Intervals are 95 % and not corrected; p-values are two-sided."]
    if tests > 1:
        notes.append(f"Holm's correction over {tests} declared contrasts: the smallest p must be at most {step:.4f}. "
                     "All other comparisons are exploratory.")
    largest = max((arm.questions.filter("scored") for arm in arms.values()), key=lambda rows: rows.height, default=None)
    if largest is not None:
        notes.append(grouping_in_words(largest))
    if len({tuple(arm.questions["question"].sort()) for arm in arms.values()}) > 1:
        notes.append("Arms were run on different questions: each contrast uses those that both arms have.")
    return notes


def compared_metrics(comparison: Comparison) -> set[str]:
    """Return the metrics that any arm has."""
    return {name for arm in comparison["arms"].values() for name in arm["metrics"]}


def judge_metrics(comparison: Comparison) -> list[str]:
    """Return the judges' metrics, in alphabetical order, without the costs of answers."""
    return [m for m in judge_columns(sorted(compared_metrics(comparison))) if not m.endswith("_mean")]


def finite(value: Any) -> Any:
    """Replace what JSON cannot hold: numpy numbers by Python's, NaN and infinities by null."""
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
