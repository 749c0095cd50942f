"""The opening of every report: the verdict in sentences, and the arms in tiers."""

from __future__ import annotations

from memlab.evaluate.compare import ArmSummary, Comparison
from memlab.evaluate.verbalise import opponent
from memlab.evaluate.verdict import winner, winning_arm
from memlab.text.display import format_count, format_number

FAIR = 0.5
"""A contrast with less power than this for the difference planned for is named at the top of the report."""


def opening(comparison: Comparison) -> list[str]:
    """Return a report's first sentences: what to use or which rule wins, and what could not be shown."""
    first, found = winner(comparison["contrasts"]), comparison["verdict"]
    sentences = [first] if first else list(found["words"]) if found else []
    if arm := winning_arm(comparison["contrasts"]):
        sentences += _use(comparison["arms"].get(arm), arm)
    weak = [c for c in comparison["contrasts"]
            if c["verdict"] in ("open", "likely") and c["power"] is not None and c["power"] < FAIR]
    if weak:
        names = "; ".join(f"{c['arm']} against {opponent(c)} ({100 * (c['power'] or 0.0):.0f} %)" for c in weak)
        sentences.append(f"Not enough questions or groups to show a difference of the size planned for: {names}. In "
                         "brackets is the chance that it had.")
    return sentences


def _use(summary: ArmSummary | None, arm: str) -> list[str]:
    """Return what the winning rule shows as it is set here; empty if its arm did not finish."""
    shown = None if summary is None else summary["metrics"].get("selected/turn/recall_all")
    if summary is None or shown is None or summary["tokens_mean"] is None:
        return []
    return [f"Use {arm}: as it is set here it shows all evidence turns for {100 * shown['value']:.1f} % of the "
            f"questions at {summary['tokens_mean']:,.0f} tokens each."]


def tiers(comparison: Comparison) -> list[tuple[int, list[tuple[str, str, str]]]]:
    """Return (tier, its arms as (name, value, tokens)), the best first; empty without a verdict."""
    found = comparison["verdict"]
    if not found or found["whole"] is not None:
        return []
    rows: dict[int, list[tuple[str, str, str]]] = {}
    for place in found["ranking"]:
        rows.setdefault(place["tier"], []).append(
            (place["arm"], format_number(place["value"]), format_count(place["tokens"])))
    return list(rows.items())
