"""The recall-token curves of all rules, as differences from constant K at equal tokens, drawn into a PNG file.

    python experiments/adaptive_k/figure.py OUT.png "title=FOLDER" ["title=FOLDER" ...]

Each FOLDER is a report's folder with comparison.json. Needs Chromium on the path, and `pip install plotly`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

METRIC = "selected/turn/recall_all"
FIRST, LAST = 3, 50
"""The constant K between whose tokens the curves are drawn."""

STYLES = {
    "marginal": ("#0b5fa5", "solid", 3), "budget_by_value": ("#0b5fa5", "dot", 2), "budget": ("#444444", "dash", 2),
    "choppy": ("#1b8a3a", "solid", 2), "top_p_calibrated": ("#1b8a3a", "dot", 2), "calibrated": ("#b5261e", "solid", 2),
    "top_p": ("#b5261e", "dot", 2), "conformal_mass": ("#b5261e", "dash", 1), "by_type": ("#8a4fbf", "solid", 2),
    "adaptive_k_gap": ("#d98200", "solid", 1), "adaptive_k_moving_average": ("#d98200", "dot", 1),
    "adaptive_k_second_difference": ("#d98200", "dash", 1),
    "cluster_gap": ("#c2468b", "solid", 1),
}
WIDTH, HEIGHT = 1400, 480
"""Pixels of the figure, and of each row of two panels."""


def difference(rule: list[dict[str, float]], constant: list[dict[str, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens and the rule's height above constant K, in points, where both curves reach."""
    t, v = (np.array([p[key] for p in sorted(rule, key=lambda p: p["tokens"])]) for key in ("tokens", "value"))
    k, c = (np.array([p[key] for p in constant]) for key in ("tokens", "value"))
    grid = np.geomspace(max(k[FIRST - 1], t[0]), min(k[LAST - 1], t[-1]), 80)
    return grid, 100 * (np.interp(grid, t, v) - np.interp(grid, k, c))


def figure(panels: dict[str, Path]) -> go.Figure:
    """Return one panel for each report."""
    rows = (len(panels) + 1) // 2
    drawn = make_subplots(rows, 2, subplot_titles=list(panels), vertical_spacing=0.16, horizontal_spacing=0.07)
    for i, folder in enumerate(panels.values()):
        comparison = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
        for name, (color, dash, width) in STYLES.items():
            if name not in comparison["rule_curves"]:
                continue
            tokens, points = difference(comparison["rule_curves"][name][METRIC], comparison["constant_k"][METRIC])
            drawn.add_scatter(x=tokens, y=points, name=name, legendgroup=name, showlegend=i == 0, mode="lines",
                              line={"color": color, "dash": dash, "width": width}, row=i // 2 + 1, col=i % 2 + 1)
    ticks = [100, 200, 500, 1000, 2000, 5000, 10000]
    drawn.update_xaxes(type="log", title="mean context tokens", tickvals=ticks, ticktext=[f"{t:,}" for t in ticks])
    drawn.update_yaxes(title="points above constant K", zeroline=True, zerolinecolor="#000000")
    drawn.update_layout(template="plotly_white", width=WIDTH, height=HEIGHT * rows, font={"size": 14},
                        legend={"orientation": "h", "y": -0.12}, margin={"t": 50, "l": 60, "r": 20, "b": 60})
    return drawn


def main(words: list[str]) -> None:
    """Draw the figure that the command line describes."""
    out, panels = Path(words[0]), dict(word.split("=", 1) for word in words[1:])
    drawn = figure({title: Path(folder) for title, folder in panels.items()})
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        drawn.write_html(page, include_plotlyjs=True, config={"staticPlot": True})
        subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--user-data-dir={folder}/profile", f"--window-size={WIDTH + 20},{drawn.layout.height + 20}",
                        "--virtual-time-budget=8000", f"--screenshot={out.resolve()}", page.as_uri()],
                       check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main(sys.argv[1:])
