"""Picture of the systems: the share of questions with complete evidence for each system, one column per data set.

    python experiments/systems/picture.py experiments/systems/systems.svg runs/systems/locomo runs/systems/longmemeval_s

Reads `comparison.json` of the run folders. Systems stand in the order of the first folder.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

METRIC, TOKENS = "selected/turn/recall_all", "context/tokens_mean"
TITLES = {"locomo": "LoCoMo dev", "longmemeval_s": "LongMemEval-S dev"}
LEFT, WIDTH, GAP, TOP, STEP = 232, 250, 112, 96, 29   # pixels: names, one column, space for tokens, head, one row
INK, PALE, BLUE, GREY = "#24292f", "#57606a", "#0072B2", "#8b949e"


def draw(comparisons: list[dict[str, Any]]) -> str:
    """Return the SVG: rows are systems, columns data sets; a dot, its 95 % interval, and the mean context tokens."""
    first = comparisons[0]["arms"]
    shares = {name: arm["metrics"][METRIC]["value"] for name, arm in first.items() if name != "oracle"}
    names = sorted(shares, key=lambda name: -shares[name])
    width, bottom = LEFT + len(comparisons) * (WIDTH + GAP), TOP + STEP * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 56}" role="img" '
        'font-family="system-ui,-apple-system,Segoe UI,Roboto,DejaVu Sans,sans-serif" font-size="14">',
        f'<rect width="{width}" height="{bottom + 56}" rx="10" fill="#ffffff"/>',
        text(20, 32, "Questions whose evidence turns are all shown to the reader", INK, weight=600, size=17),
        text(20, 50, "each system may show 1,000 tokens (ElizaOS adds its recent history,", PALE, size=13),
        text(20, 66, "OltraMem a whole session); bars are 95 % intervals", PALE, size=13),
    ]
    for row, name in enumerate(names):
        y = TOP + STEP * row + 16
        if name == "best":
            parts.append(f'<rect x="10" y="{y - 14}" width="{width - 20}" height="{STEP - 2}" rx="5" fill="#e8f1f8"/>')
        parts.append(text(20, y + 4, name, BLUE if name == "best" else INK, weight=600 if name == "best" else 400))
    for column, comparison in enumerate(comparisons):
        parts += panel(comparison, names, LEFT + column * (WIDTH + GAP), bottom)
    return "\n".join([*parts, "</svg>", ""])


def panel(comparison: dict[str, Any], names: list[str], left: int, bottom: int) -> list[str]:
    """Return the column of one data set, whose left edge is at ``left`` pixels."""
    title = f"{TITLES.get(comparison['data'], comparison['data'])}, {comparison['scored']:,} questions"
    end = left + WIDTH + 92
    parts = [text(left, TOP - 10, title, INK, weight=600), text(end, TOP - 10, "tokens", PALE, "end", size=12)]
    for percent in (0, 25, 50, 75, 100):
        x = left + WIDTH * percent / 100
        parts.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#d8dee4"/>')
        parts.append(text(x, bottom + 20, f"{percent} %", PALE, "middle", size=12))
    for row, name in enumerate(names):
        y, arm = TOP + STEP * row + 16, comparison["arms"].get(name)
        if arm is None:
            parts.append(text(left + 6, y + 4, "not run", PALE, size=12))
            continue
        share, colour = arm["metrics"][METRIC], BLUE if name == "best" else GREY
        if share["low"] is not None:
            low, high = (left + WIDTH * max(0.0, min(1.0, share[side])) for side in ("low", "high"))
            parts.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="3"/>')
        x, shown = left + WIDTH * share["value"], f"{escape(name)}: {100 * share['value']:.1f} %"
        parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="6" fill="{colour}"><title>{shown}</title></circle>')
        parts.append(text(end, y + 4, f"{arm['metrics'][TOKENS]['value']:,.0f}", PALE, "end", size=12))
    return parts


def text(x: float, y: float, words: str, colour: str, anchor: str = "start", *,
         weight: int = 400, size: int = 14) -> str:
    """Return one line of text."""
    return (f'<text x="{x:.1f}" y="{y}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}" '
            f'font-size="{size}">{escape(words)}</text>')


if __name__ == "__main__":
    folders = [Path(name) for name in sys.argv[2:]]
    comparisons = [json.loads((folder / "comparison.json").read_text(encoding="utf-8")) for folder in folders]
    Path(sys.argv[1]).write_text(draw(comparisons), encoding="utf-8")
