"""An arm's figures: the rows per question, their averages and intervals, and the quality of predictions.

Where questions come in groups that are not independent, the interval is that of the mean over groups; else Wilson's for
shares, that is 0/1 metrics, and BCa for graded ones and for amounts (tokens, K), whatever their values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, TypedDict, TypeVar

import numpy as np
import polars as pl

from memlab.data.dataset import GroupBy, groups
from memlab.evaluate.certainty import CERTAINTY, nothing_there
from memlab.evaluate.evidence import BUDGET, BUDGETS, answer_metrics, judge_columns, selection, within_tokens
from memlab.evaluate.retrieval import official_metrics, retrieval
from memlab.evaluate.rounds import round_recall
from memlab.evaluate.stale import stale
from memlab.evaluate.statistics import Interval, bca, grouped_mean, mean, wilson
from memlab.pipeline.tables import Tables, frame_digest, with_text
from memlab.support.text.display import is_number


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


T = TypeVar("T")

READS = ("units", "evidence", "gold", "questions", "turns", "ids")
"""Tables that such a measure may read besides the columns question, unit, rank and tokens of ``ranking``."""

SIZE = 8
"""Rankings whose measures are cached; arms that share one run one after another."""


def by_order(measure: Callable[[Tables], T]) -> Callable[[Tables], T]:
    """Cache the result of a measure for each order; a result must not be changed in place."""
    results: OrderedDict[str, T] = OrderedDict()

    @wraps(measure)
    def memoised(tables: Tables) -> T:
        ranking = tables["ranking"]
        order = ranking.select(c for c in ("question", "unit", "rank", "tokens") if c in ranking.columns)
        key = f"{tables.digest(READS)} {frame_digest(order)}"
        if key not in results:
            results[key] = measure(tables.only(READS).updated({"ranking": ranking.with_columns(selected=False)}))
            if len(results) > SIZE:
                results.popitem(last=False)
        return results[key]

    return memoised


ABOUT = ("question", "corpus", "group", "text", "answer", "category", "abstain", "scored", "label_error")
"""Columns of a per-question frame that describe the question; all others are metrics."""

_standard, _rounds, _official = by_order(retrieval), by_order(round_recall), by_order(official_metrics)


def per_question(tables: Tables, by: GroupBy = "auto", budget: int | None = None, rounds: bool = False) -> pl.DataFrame:
    """Return one row per question, by number: the columns of ``ABOUT``, then one Float64 column per metric.

    ``by`` says which questions form a ``group``, that is, are not independent of each other. The rankings are cut at
    ``BUDGETS``, and at ``budget``, the arm's own. ``rounds`` adds recall over rounds.

    A metric is null where it is undefined: the question does not count, or has no evidence at that level.
    """
    questions = tables["questions"]
    rows = with_text(questions, tables["texts"]).join(tables["gold"], on="question", how="left").join(
        groups(questions, tables["evidence"], tables["turns"], by), on="question", how="left").select(ABOUT)
    heads = within_tokens(tables, sorted({*BUDGETS, budget or BUDGET}))
    standard = [_standard(tables), *([_rounds(tables)] if rounds else [])]
    for metrics in (*standard, selection(tables), heads, _official(tables), answer_metrics(tables),
                    stale(tables, budget or BUDGET), nothing_there(tables)):
        rows = rows.join(metrics, on="question", how="left")
    return rows.sort("question")


def metric_names(questions: pl.DataFrame) -> list[str]:
    """Return the metric columns of a per-question frame, in its order."""
    return [c for c in questions.columns if c not in (*ABOUT, CERTAINTY)]


def is_pooled(metric: str) -> bool:
    """Return whether a metric is a figure of all questions together, whose value for one question or type is none."""
    return metric.startswith(("stale/shown", "nothing/auroc"))


COSTS = ("context/tokens", "selected/k", "answer/prompt_tokens", "answer/completion_tokens", "answer/dropped")
"""Metrics that are amounts; their average is named ``..._mean``."""

LOW_IS_BETTER = ("context/tokens", "stale/shown")  # how metrics begin of which less is better

PRINTED = tuple(f"{level}/{metric}" for level in ("turn", "session")
                for metric in ("ndcg@10", "recall@10", "mrr@10", "recall_any@1"))
"""Metrics that other benchmarks print, and that have macro averages too; recall_any@1 is their hit@1."""


def averaged_name(metric: str) -> str:
    """Return the name of a metric's average.

    >>> averaged_name("context/tokens"), averaged_name("session/mrr")
    ('context/tokens_mean', 'session/mrr')
    """
    return f"{metric}_mean" if metric in COSTS else metric


def views(questions: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (prefix, rows): all questions, those of each type, and, where labels were audited, those without error."""
    yield "", questions
    for category in sorted(questions["category"].drop_nulls().unique()):
        yield f"type={category}/", questions.filter(pl.col("category") == category)
    if questions["label_error"].is_not_null().any():
        yield "clean/", questions.filter(pl.col("label_error").is_null())


def view(questions: pl.DataFrame, name: str) -> tuple[pl.DataFrame, str]:
    """Return the rows and the column behind a name of metrics.json, such as ``type=multi-session/session/mrr``."""
    if name.startswith("type="):
        category, _, name = name.removeprefix("type=").partition("/")
        questions = questions.filter(pl.col("category") == category)
    elif name.startswith("clean/"):
        name = name.removeprefix("clean/")
        questions = questions.filter(pl.col("label_error").is_null())
    return questions, name.removesuffix("_mean") if name.removesuffix("_mean") in COSTS else name


def averages(questions: pl.DataFrame) -> dict[str, float]:
    """Average a per-question frame: overall, ``type=.../`` and ``clean/``; metrics that no question has are left out.

    ``questions`` counts the rows, ``questions/scored`` those that count in retrieval averages. The figures of
    ``macro_averages`` are among them.
    """
    figures: dict[str, float] = {}
    for prefix, rows in views(questions):
        figures[f"{prefix}questions"] = rows.height
        figures[f"{prefix}questions/scored"] = int(rows["scored"].sum())
        for metric in metric_names(questions):
            if prefix and is_pooled(metric):
                continue
            value = mean(value for value in rows[metric].to_list() if value is not None)
            if value is not None:
                figures[prefix + averaged_name(metric)] = value
    return figures | {name: value for name, (value, _) in macro_averages(questions).items()}


def macro_averages(questions: pl.DataFrame) -> dict[str, tuple[float, int]]:
    """Average the metrics of ``PRINTED`` in two steps: name -> (mean of the parts' means, questions that define it).

    ``macro/type/...`` is the mean over question types, ``macro/corpus/...`` over conversations; each is left out where
    there are fewer than two parts, or where every part has one question. The plain figure is the mean over questions,
    called micro. The macro figures of MTEB's LMEB tasks (Zhao et al., arXiv 2603.12572) are those over types: a task
    such as LoCoMo has one subset for each type, and the score of a task is the unweighted mean of its subsets.

    >>> rows = pl.DataFrame({"category": ["a", "a", "b"], "corpus": [0, 1, 2], "turn/ndcg@10": [1.0, 0.0, 1.0]})
    >>> macro_averages(rows)
    {'macro/type/turn/ndcg@10': (0.75, 3)}
    """
    figures = {}
    for part, column in (("type", "category"), ("corpus", "corpus")):
        for metric in (m for m in PRINTED if m in questions.columns):
            rows = questions.select(column, metric).drop_nulls()
            parts: dict[Any, list[float]] = {}
            for name, value in rows.iter_rows():
                parts.setdefault(name, []).append(value)
            if 1 < len(parts) < rows.height:
                average = mean(of_part for one in parts.values() if (of_part := mean(one)) is not None)
                if average is not None:
                    figures[f"macro/{part}/{metric}"] = average, rows.height
    return figures


HEADLINE = (
    "session/recall_any@1", "session/recall_all@5", "session/recall_all@10", "session/recall@10", "session/ndcg@10",
    "turn/recall_all@10", "turn/recall@10", "round/recall@10", "turn/ndcg@10", "selected/session/recall_all",
    "selected/turn/recall_all", "context/tokens", "stale/shown@10", "stale/recall@10", "stale/newest_first",
    "nothing/auroc", "nothing/refused@5",
)
"""Metrics that are shown by type and compared between arms beside the declared ones."""

MEAN_RESAMPLES = 1_999
"""For intervals of single means, of which a report has hundreds; contrasts draw 9,999."""


class Estimate(TypedDict):
    """A mean with its 95 % interval over ``n`` questions; bounds are None where no interval is defined."""

    value: float
    low: float | None
    high: float | None
    n: int


def headline(columns: list[str]) -> list[str]:
    """Return the metrics of a frame that are shown by type and compared: the judges' first, then ``HEADLINE``.

    >>> headline(["question", "session/ndcg@10", "answer/f1"])
    ['answer/f1', 'session/ndcg@10']
    """
    return [*judge_columns(columns), *(m for m in HEADLINE if m in columns)]


def summary(questions: pl.DataFrame, seed: int = 0) -> dict[str, Estimate]:
    """Return the estimates of an arm, with the names of metrics.json.

    All metrics over all questions; the ``headline`` ones also by type and without label errors. Macro averages have no
    interval.
    """
    estimates: dict[str, Estimate] = {}
    shown = headline(questions.columns)
    for prefix, rows in views(questions):
        names = [m for m in metric_names(questions) if not prefix or m in shown and not is_pooled(m)]
        for metric, (value, interval, n) in intervals(rows, names, seed).items():
            low, high = interval if interval else (None, None)
            estimates[prefix + averaged_name(metric)] = {"value": value, "low": low, "high": high, "n": n}
    for name, (value, n) in macro_averages(questions).items():
        estimates[name] = {"value": value, "low": None, "high": None, "n": n}
    return estimates


def intervals(rows: pl.DataFrame, metrics: list[str], seed: int) -> dict[str, tuple[float, Interval, int]]:
    """Return metric -> (mean, interval, questions that define it); metrics that no question defines are left out."""
    results: dict[str, tuple[float, Interval, int]] = {}
    graded: dict[bytes, list[str]] = {}  # columns defined for the same questions share their resamples
    for metric in metrics:
        column, groups = rows[metric], rows["group"]
        defined = column.is_not_null()
        if column.null_count():
            column, groups = column.filter(defined), groups.filter(defined)
        value = mean(column.to_list())
        if value is None:
            continue
        values, interval = column.to_numpy(), None
        if groups.n_unique() < len(groups):
            interval = grouped_mean(values, groups.to_numpy()).interval()
            if interval:  # a mean of shares or amounts has bounds that a t-interval does not know
                interval = max(0.0, interval[0]), interval[1] if metric in COSTS else min(1.0, interval[1])
        elif metric not in COSTS and np.isin(values, (0.0, 1.0)).all():
            interval = wilson(int(values.sum()), len(values))
        else:
            graded.setdefault(defined.to_numpy().tobytes(), []).append(metric)
        results[metric] = (value, interval, len(values))
    for group in graded.values():
        block = rows.select(group).drop_nulls().to_numpy()
        for metric, interval in zip(group, bca(block, seed, MEAN_RESAMPLES)):
            results[metric] = (results[metric][0], interval, results[metric][2])
    return {metric: results[metric] for metric in metrics if metric in results}
