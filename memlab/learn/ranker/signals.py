"""Features of the signals of a ranking: standardised within the question, of the neighbours, and of the session.

Rows are sorted and summed as plain arrays; a group-by per feature costs several times as much.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.stages.rank.units import signals_of

FUSED = "linear"
"""Name of the fused score as a signal."""

STEPS = (-2, -1, 1, 2)
"""Distances to the neighbours whose z-scores are features as well."""

COLUMNS = ("z {}", *(f"z {{}} {step:+}" for step in STEPS), "below {}", "rank {}", "session best z {}",
           "session second z {}", "session sum z {}", "session turns ranked", "session best z {} below",
           "session best z {} minus own", "session rank")
"""Features in their order, each for all signals that have it: trees draw features by their places."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def signal_features(placed: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Return features of the signals for the units up to ``depth``.

    ``placed`` is a ranking with corpus, session and turn. A z-score counts the first ``depth`` units of the question,
    a unit without a hit as the lowest of its signal; a neighbour outside the ranking has none.
    """
    lanes = signals_of(placed.drop("corpus", "session", "turn"))
    names = [FUSED, *(lane for lane in lanes if lane != FUSED)]
    inside = placed["rank"].to_numpy() <= depth
    question = dense_numbers(placed["question"])
    signals = _fill(placed.select(pl.col("score").alias(FUSED), *names[1:]), question, inside)
    head = Groups(question[inside])
    session = placed["session"].cast(pl.Int64).to_numpy()
    of_session = session_keys(question, session)
    sessions = Groups(dense_numbers(pl.Series(of_session[inside])))
    near = _neighbours(of_session, placed["turn"], inside)

    def columns_of(name: str) -> dict[str, Floats]:
        z = zscores(signals[name], question, inside)
        columns = _signal_columns(name, signals[name][inside], z[inside], head, sessions)
        if "session" not in name:
            columns |= {f"z {name} {step:+}": np.where(row < 0, np.nan, z[row]) for step, row in near.items()}
        return columns

    made = {column: values for name in names for column, values in columns_of(name).items()}
    made["session turns ranked"] = sessions.size.astype(np.float64)[sessions.of]
    made["session rank"] = _session_ranks(made[f"session best z {FUSED}"], head.of, sessions)
    columns = {column: made[column] for form in COLUMNS for name in names if (column := form.format(name)) in made}
    ranks = [f"rank {name}" for name in names]
    return pl.DataFrame(columns, nan_to_null=True).with_columns(
        pl.col(*ranks, "session turns ranked", "session rank").log1p()).with_columns(
        pl.sum_horizontal((pl.col(rank) < 2.4).cast(pl.Float64) for rank in ranks).alias("lanes in 10"),
        pl.mean_horizontal(ranks).alias("mean rank"), pl.max_horizontal(ranks).alias("worst rank"),
        pl.min_horizontal(ranks).alias("best rank"))


def _signal_columns(name: str, values: Floats, z: Floats, head: Groups, sessions: Groups) -> dict[str, Floats]:
    """Return the features of one signal: values and z-scores (n,) of the rows up to the depth."""
    order = head.descending(values)
    top = z[order[head.start]][head.of]
    columns = {f"z {name}": z, f"below {name}": top - z, f"rank {name}": head.ranks(values, order)}
    if "session" in name:  # it is alike for all turns of a session
        return columns
    ordered = z[sessions.descending(values)]
    best = ordered[sessions.start][sessions.of]
    first_five = sum(np.maximum(sessions.nth(ordered, n, 0.0), 0.0) for n in range(5))
    return columns | {
        f"session best z {name}": best, f"session second z {name}": sessions.nth(ordered, 1, np.nan)[sessions.of],
        f"session sum z {name}": np.asarray(first_five)[sessions.of], f"session best z {name} below": top - best,
        f"session best z {name} minus own": best - z}


class Groups:
    """Rows in groups: ``of`` (n,) numbers the groups from 0 without gaps.

    size, start: (groups,) the rows of each group, and the place of its first row when all rows are sorted by group.
    """

    def __init__(self, of: Ints) -> None:
        self.of = of
        self.size = np.bincount(of)
        self.start = np.cumsum(self.size) - self.size

    def descending(self, values: Floats) -> Ints:
        """Return the rows, (n,), group after group, by falling values in each; equal ones in the order of the rows."""
        return np.lexsort((-values, self.of))

    def nth(self, ordered: Floats, n: int, missing: float) -> Floats:
        """Return the n-th of ``descending`` values, from 0, of each group; ``missing`` if it has fewer."""
        return np.where(self.size > n, ordered[np.minimum(self.start + n, len(ordered) - 1)], missing)

    def ranks(self, values: Floats, order: Ints) -> Floats:
        """Return each row's rank from 1 in its group, (n,); equal values have the best rank of theirs."""
        ordered, group = values[order], self.of[order]
        place = np.arange(len(order))
        place[1:][(ordered[1:] == ordered[:-1]) & (group[1:] == group[:-1])] = 0
        found = np.empty(len(order))
        found[order] = np.maximum.accumulate(place) - self.start[group] + 1
        return found


def dense_numbers(keys: pl.Series) -> Ints:
    """Return the place of each key among the distinct ones, sorted, from 0, (n,)."""
    return keys.rank("dense").cast(pl.Int64).to_numpy() - 1


def session_keys(question: Ints, session: Ints) -> Ints:
    """Return one number for each session of each question, (n,); a question has one corpus. Both (n,) are from 0."""
    return question * (int(session.max(initial=0)) + 1) + session


def _fill(signals: pl.DataFrame, question: Ints, inside: Bools) -> dict[str, Floats]:
    """Return each signal, (n,): where it is null, the lowest of the question's rows ``inside``, or 0."""
    own = question[inside]
    filled = {}
    for name in signals.columns:
        values = signals[name].to_numpy()
        missing = np.isnan(values)
        if missing.any():
            lowest = np.full(int(question.max(initial=-1)) + 1, np.nan)
            np.fmin.at(lowest, own, values[inside])
            values = np.where(missing, np.where(np.isnan(lowest), 0.0, lowest)[question], values)
        filled[name] = values
    return filled


def zscores(values: Floats, question: Ints, inside: Bools | None = None) -> Floats:
    """Return (value - mean) / deviation of the question's rows ``inside``, (n,); 0 if they are constant.

    Sums are made in the order of the rows, so that the last digit does not depend on threads.
    """
    own, of = (values, question) if inside is None else (values[inside], question[inside])
    size = np.maximum(np.bincount(of, minlength=int(question.max(initial=-1)) + 1), 1)
    mean = np.bincount(of, own, len(size)) / size
    deviation = np.sqrt(np.bincount(of, (own - mean[of]) ** 2, len(size)) / size)
    varies = deviation > 1e-9
    return np.where(varies[question], (values - mean[question]) / np.where(varies, deviation, 1.0)[question], 0.0)


def _neighbours(of_session: Ints, turns: pl.Series, inside: Bools) -> dict[int, Ints]:
    """Return for each step the row that is so many turns on in the session of each row inside, or -1."""
    turn = turns.cast(pl.Int64).to_numpy()
    key = of_session * (turn.max(initial=0) + 1 + 2 * max(STEPS)) + turn  # no step out of a session leads into another
    order = np.argsort(key)
    ordered, wanted = key[order], key[inside]
    place = np.empty(len(key), np.int64)
    place[order] = np.arange(len(key))
    near = {step: np.full(len(wanted), -1) for step in STEPS}
    for step, row in near.items():
        for away in range(1, abs(step) + 1):  # a turn between them may have no hit
            at = np.clip(place[inside] + (away if step > 0 else -away), 0, len(key) - 1)
            row[:] = np.where(ordered[at] == wanted + step, order[at], row)
    return near


def _session_ranks(best: Floats, question: Ints, sessions: Groups) -> Floats:
    """Return the dense rank of each row's session among those of its question, best first, (n,).

    best, question: (n,) of each row: the best score of its session, its question.
    """
    _, first = np.unique(sessions.of, return_index=True)
    rank = pl.DataFrame({"best": best[first], "question": question[first]}).select(
        pl.col("best").rank("dense", descending=True).over("question").cast(pl.Float64))
    return rank.to_series().to_numpy()[sessions.of]
