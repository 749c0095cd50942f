"""The rule that wins a comparison of whole curves, or that none does, in one or two sentences."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.evaluate.answer_words import ANSWER_WORDS
from memlab.evaluate.contrast import ContrastResult
from memlab.evaluate.curve_contrast import is_curve
from memlab.evaluate.verbalise import bound, opponent, p_value


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
    facts = []
    if row["low"] is not None and row["high"] is not None:
        facts.append(f"95 % interval {bound(row, row['low'])} to {bound(row, row['high'])}")
    facts.append("nothing can be tested" if row["p_adjusted"] is None else f"p {p_value(row['p_adjusted'])} after Holm")
    facts += [] if row["verdict"] == "shown" else ["not shown"]
    more, fewer = ("more of the answers' words", "less of the answers' words") if _in_words(row) else (
        "more questions", "fewer questions")
    other = opponent(row).removesuffix(" at equal tokens")
    return f"{abs(100 * difference):.1f} points {more if difference >= 0 else fewer} than {other} ({', '.join(facts)})"
