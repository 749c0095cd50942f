"""The verdict of a comparison: which arm to use, how surely, and which cheaper arm is as good.

Arms are ranked by one metric and put into tiers. A tier is led by its best arm; an arm belongs to it unless the leader
is shown to be ahead, by the paired t-test over groups with Holm's correction over all arms that the leader is compared
with. No arm is preferred where the best one is shown to be ahead of none. Rules that are compared over whole curves
have no tiers: what a rule finds depends on its budget, and ``winner`` names the rule that wins.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TypedDict

import polars as pl

from memlab.evaluate.contrast import ALPHA, KEPT_RANKS, Contrast, ContrastResult, measure
from memlab.evaluate.curves import is_curve
from memlab.evaluate.evidence import ANSWER_WORDS
from memlab.evaluate.statistics import holm
from memlab.evaluate.summary import COSTS, view
from memlab.evaluate.verbalise import interval, opponent, p_value
from memlab.text.display import format_signed


def winner(contrasts: Sequence[ContrastResult]) -> str:
    """Return which rule wins among the declared curve contrasts, by how much and how surely; "" without such contrasts.

    A rule wins if all its contrasts are shown, other than those with a rule that wins without it, and no such rule is
    shown to be ahead of it. Of several, the one with the largest difference is named first.
    """
    rules: dict[str, list[ContrastResult]] = {}
    for row in contrasts:
        if is_curve(row["metric"]) and row["direction"] == "greater":
            rules.setdefault(row["arm"], []).append(row)
    if not rules:
        return ""
    surely = {arm for arm, rows in rules.items() if all(row["verdict"] == "shown" for row in rows)}
    ahead = {arm: rows for arm, rows in rules.items() if any(row["verdict"] == "shown" for row in rows) and all(
        row["verdict"] == "shown" or row["comparator"] in surely and row["verdict"] in ("open", "likely")
        for row in rows)}
    beaten = {row["comparator"] for rows in ahead.values() for row in rows if row["verdict"] == "shown"}
    winners = sorted(ahead.keys() - beaten, key=lambda arm: (-_largest(rules[arm]), arm))
    if winners:
        first, others = winners[0], [*winners[1:], *sorted(ahead.keys() & beaten)]
        also = f" Also shown to beat what it is compared with: {', '.join(others)}." if others else ""
        return f"{first} wins: at equal tokens it {_margins(rules[first])}.{also}"
    measured = [arm for arm, rows in rules.items() if any(row["difference"] is not None for row in rows)]
    if not measured:
        return "No rule could be compared over its whole curve."
    nearest = max(measured, key=lambda arm: (min(_rank(row) for row in rules[arm]), _largest(rules[arm])))
    return ("No rule is shown to beat what it is compared with at equal tokens. The nearest is "
            f"{nearest}, which {_margins(rules[nearest])}.")


def winning_arm(contrasts: Sequence[ContrastResult]) -> str | None:
    """Return the rule that ``winner`` names first; None if none wins."""
    arm, wins, _ = winner(contrasts).partition(" wins: ")
    return arm if wins else None


def _largest(rows: Sequence[ContrastResult]) -> float:
    return max((row["difference"] for row in rows if row["difference"] is not None), default=float("-inf"))


def _rank(row: ContrastResult) -> int:
    return {"shown": 2, "likely": 1}.get(row["verdict"], 0)


def _margins(rows: Sequence[ContrastResult]) -> str:
    """Return what the rule finds, and by how much more or less than each of its comparators."""
    finds, join = ("shows ", ", and ") if _in_words(rows[0]) else ("finds complete evidence in ", ", and in ")
    return finds + join.join(_margin(row, row["difference"]) for row in rows if row["difference"] is not None)


def _in_words(row: ContrastResult) -> bool:
    return row["metric"].endswith(ANSWER_WORDS)


def _margin(row: ContrastResult, difference: float) -> str:
    facts = interval(row)
    facts.append("nothing can be tested" if row["p_adjusted"] is None else f"p {p_value(row['p_adjusted'])} after Holm")
    facts += [] if row["verdict"] == "shown" else ["not shown"]
    more, fewer = ("more of the answers' words", "less of the answers' words") if _in_words(row) else (
        "more questions", "fewer questions")
    other = opponent(row).removesuffix(" at equal tokens")
    return f"{abs(100 * difference):.1f} points {more if difference >= 0 else fewer} than {other} ({', '.join(facts)})"


MARGIN = 0.02
"""A cheaper arm is as good if the 95 % interval of its difference excludes a loss of this size: 2 points."""

PRICE = 0.5
"""A cheaper arm shows at most this share of the best arm's tokens."""

UNEQUAL = 1.5
"""Ratio of the best arm's tokens to the median of the others from which costs are said to differ."""

NAMED = 5
"""Rivals that are named where none is shown to be behind."""

WHOLE = 0.9
"""If at least this share of the questions is shown every candidate, selections cannot differ."""

CHOICES = ("selected/turn/recall_all", "selected/session/recall_all", "turn/ndcg@10", "session/ndcg@10")
"""Metrics to rank arms by where no contrast is declared and no answer is judged, in this order."""


class Rival(TypedDict):
    """Another arm against the best one: its difference (rival less best), interval and p after Holm."""

    arm: str
    tokens: float | None
    difference: float
    low: float | None
    high: float | None
    p: float | None


class Place(TypedDict):
    """One arm's place in the ranking."""

    arm: str
    tier: int
    value: float
    tokens: float | None


class Recommendation(TypedDict):
    """The ranking by ``metric``, best first, and the comparison of the best arm with its rivals.

    ``questions`` define the metric, in so many independent ``groups``.

    ``tied`` are those that it is not shown to be ahead of, ``behind`` is the nearest of the others, ``cheaper`` the
    cheapest of the ``cheap`` arms with at most half of its tokens that is as good. ``whole`` is the share of questions
    that every arm shows all candidates for, where it is at least ``WHOLE``. ``words`` says it all in sentences.
    """

    metric: str
    questions: int
    groups: int
    ranking: list[Place]
    tied: list[Rival]
    behind: Rival | None
    cheaper: Rival | None
    cheap: int
    whole: float | None
    words: list[str]


def verdict(frames: Mapping[str, pl.DataFrame], rankings: Sequence[pl.DataFrame | None],
            contrasts: Sequence[Contrast], judged: Sequence[str] = ()) -> Recommendation | None:
    """Rank the arms and test them against the best; None with fewer than two, no metric for all of them, or curves.

    ``frames`` has the per-question frame of each candidate, ``rankings`` their rankings (None where there is none);
    ``judged`` names the judges' metrics. Ties in value are broken by fewer tokens, then by name.
    """
    if any(is_curve(c.metric) for c in contrasts):
        return None
    metric = next((name for name in _metrics(contrasts, judged)
                   if all(_mean(frame, name) is not None for frame in frames.values())), None)
    if metric is None or len(frames) < 2:  # noqa: PLR2004  (a comparison needs two)
        return None
    values = {name: _mean(frame, metric) or 0.0 for name, frame in frames.items()}
    tokens = {name: _mean(frame, "context/tokens") for name, frame in frames.items()}
    order = sorted(frames, key=lambda name: (-values[name], tokens[name] or 0.0, name))
    ranking: list[Place] = []
    waiting, rivals, tier = order, list[Rival](), 0
    while waiting:
        leader, rest = waiting[0], waiting[1:]
        tier += 1
        against = _against(leader, rest, frames, metric, tokens)
        rivals = rivals or against
        apart = {rival["arm"] for rival in against if rival["p"] is not None and rival["p"] <= ALPHA}
        ranking += [{"arm": name, "tier": tier, "value": values[name], "tokens": tokens[name]}
                    for name in waiting if name not in apart]
        waiting = [name for name in rest if name in apart]
    first_tier = {place["arm"] for place in ranking if place["tier"] == 1}
    price = tokens[order[0]]
    cheap = [] if price is None else [
        rival for rival in rivals if rival["tokens"] is not None and rival["tokens"] <= PRICE * price]
    good = [rival for rival in cheap if rival["low"] is not None and rival["low"] > -MARGIN]
    sizes = _sizes(frames[order[0]], metric)
    found: Recommendation = {
        "metric": metric, "questions": sizes[0], "groups": sizes[1], "ranking": ranking,
        "tied": [r for r in rivals if r["arm"] in first_tier],
        "behind": next((r for r in rivals if r["arm"] not in first_tier), None),
        "cheaper": min(good, key=lambda r: (r["tokens"] or 0.0, r["arm"]), default=None), "cheap": len(cheap),
        "whole": _whole(rankings), "words": []}
    return {**found, "words": words(found)}


def words(found: Recommendation) -> list[str]:
    """Return the verdict in sentences: which arm, how sure, and which one is as good at half the price."""
    if found["whole"] is not None:
        return [f"Nothing can be compared: {100 * found['whole']:.0f} % of the questions are shown every candidate, "
                "since the budget holds the whole memory. Fix: show less (rank.select.tokens, rank.select.k), or take "
                "data with longer histories."]
    if found["behind"] is None:
        return _tied_verdict(found)
    best, others = found["ranking"][0], len(found["ranking"]) - 1
    sentences = [f"Use {best['arm']}: {_finds(found['metric'], best['value'])}{_at(best['tokens'])}."]
    if found["tied"]:
        names = ", ".join(f"{rival['arm']} ({_lead(rival, others)})" for rival in found["tied"])
        sentences.append(f"How sure: it is not shown to be ahead of {names}.")
    behind = found["behind"]
    rest = others - len(found["tied"])
    ahead = f"{'all' if rest == others else 'the other'} {rest}; the nearest is " if rest > 1 else ""
    sentences.append(f"{'It' if found['tied'] else 'How sure: it'} is shown to be ahead of {ahead}{behind['arm']} "
                     f"({_lead(behind, others)}).")
    return sentences + _cheaper(found)


def _tied_verdict(found: Recommendation) -> list[str]:
    """Return the verdict where the best arm is shown to be ahead of no other."""
    best, rivals = found["ranking"][0], found["tied"]
    data = f"on {found['questions']:,} question{'s' * (found['questions'] != 1)}"
    if found["groups"] < found["questions"]:
        data += f" in {found['groups']:,} independent group{'s' * (found['groups'] != 1)}"
    if all(place["value"] == best["value"] for place in found["ranking"]):
        return [f"No arm can be preferred: all {len(rivals) + 1} are level, {_finds(found['metric'], best['value'])}, "
                f"{data}.", *_cheaper(found)]
    nearest = ", ".join(f"{rival['arm']} ({_lead(rival, len(rivals))})" for rival in rivals[:NAMED])
    more = f", and {len(rivals) - NAMED} more" if len(rivals) > NAMED else ""
    behind = "which is not shown to be worse" if len(rivals) == 1 else "none of which is shown to be worse"
    return [f"No arm can be preferred: {best['arm']} has the highest value, {_finds(found['metric'], best['value'])}"
            f"{_at(best['tokens'])}, {data}.", f"It is ahead of {nearest}{more}, {behind}.", *_cheaper(found)]


def _cheaper(found: Recommendation) -> list[str]:
    """Return whether an arm is as good at half the price, and a warning where more tokens may be what wins."""
    sentences = []
    if cheaper := found["cheaper"]:
        sentences.append(f"As good at half the price: {cheaper['arm']}{_at(cheaper['tokens'])}, {_size(cheaper)}; the "
                         f"interval excludes a loss of {100 * MARGIN:.0f} points.")
    elif found["cheap"]:
        sentences.append("As good at half the price: no arm.")
    prices = [place["tokens"] for place in found["ranking"] if place["tokens"] is not None]
    if len(prices) > 1 and prices[0] > UNEQUAL * statistics.median(prices[1:]):
        sentences.append(f"Costs differ: the arms show {min(prices):,.0f} to {max(prices):,.0f} tokens, and more "
                         "tokens find more. rank/select=budget compares them at equal tokens.")
    return sentences


def _finds(metric: str, value: float) -> str:
    """Return what a value means.

    >>> _finds("selected/turn/recall_all", .858), _finds("turn/ndcg@10", .7)
    ('all evidence turns are shown for 85.8 % of the questions', 'turn/ndcg@10 is 0.700')
    """
    level = {"selected/turn/recall_all": "turns", "selected/session/recall_all": "sessions"}.get(metric)
    if level:
        return f"all evidence {level} are shown for {100 * value:.1f} % of the questions"
    return f"{metric} is {value:.3f}"


def _at(tokens: float | None) -> str:
    return "" if tokens is None else f" at {tokens:,.0f} tokens each"


def _size(rival: Rival) -> str:
    """Return a difference in points with its interval.

    >>> _size({"arm": "a", "tokens": None, "difference": -.0042, "low": -.015, "high": .0066, "p": 1.0})
    '−0.4 points, 95 % interval −1.5 to +0.7'
    """
    def points(value: float) -> str:
        return format_signed(100 * value, 1)

    interval = "" if rival["low"] is None or rival["high"] is None else (
        f", 95 % interval {points(rival['low'])} to {points(rival['high'])}")
    return f"{points(rival['difference'])} points{interval}"


def _lead(rival: Rival, others: int) -> str:
    """Return by how much the best arm is ahead of a rival.

    >>> _lead({"arm": "a", "tokens": None, "difference": -.15, "low": -.25, "high": -.05, "p": .004}, 3)
    '+15.0 points, 95 % interval +5.0 to +25.0, p = .004 after Holm over 3'
    """
    low, high = rival["low"], rival["high"]
    mirrored: Rival = {**rival, "difference": -rival["difference"], "low": None if high is None else -high,
                     "high": None if low is None else -low}
    p = "" if rival["p"] is None else f", p {p_value(rival['p'])}" + f" after Holm over {others}" * (others > 1)
    return _size(mirrored) + p


def _metrics(contrasts: Sequence[Contrast], judged: Sequence[str]) -> list[str]:
    costs = tuple(f"/{cost}" for cost in COSTS)
    return [m for m in dict.fromkeys([*(c.metric for c in contrasts), *judged, *CHOICES])
            if not m.removesuffix("_mean").endswith(costs) and m not in COSTS]


def _mean(questions: pl.DataFrame, metric: str) -> float | None:
    rows, column = view(questions, metric)
    value = rows[column].drop_nulls().mean() if column in rows.columns else None
    return float(value) if isinstance(value, int | float) else None


def _against(leader: str, others: Sequence[str], frames: Mapping[str, pl.DataFrame], metric: str,
             tokens: Mapping[str, float | None]) -> list[Rival]:
    rows: list[ContrastResult] = [
        measure(Contrast(other, leader, metric), frames[other], frames[leader], alpha=ALPHA, seed=0, declared=False)
        for other in others]
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    return [{"arm": row["arm"], "tokens": tokens[row["arm"]], "difference": row["difference"] or 0.0,
             "low": row["low"], "high": row["high"], "p": None if row["p"] is None else p}
            for row, p in zip(rows, adjusted)]


def _sizes(questions: pl.DataFrame, metric: str) -> tuple[int, int]:
    """Return the number of questions that define a metric, and of their groups."""
    rows, column = view(questions, metric)
    rows = rows.filter(pl.col(column).is_not_null())
    return rows.height, rows["group"].n_unique()


def _whole(rankings: Sequence[pl.DataFrame | None]) -> float | None:
    """Return the smallest share, over arms, of questions that are shown all their candidates; None if unknown."""
    shares = []
    for ranking in rankings:
        if ranking is None or ranking.is_empty() or "selected" not in ranking.columns:
            return None
        all_shown = pl.col("selected").all() & (pl.len() < KEPT_RANKS)  # a run folder keeps no more ranks
        shares.append(ranking.group_by("question").agg(all_shown.alias("whole"))["whole"].mean())
    smallest = min((share for share in shares if isinstance(share, float)), default=None)
    return smallest if smallest is not None and smallest >= WHOLE else None
