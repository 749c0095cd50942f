"""The table of arms for other programs: as CSV with numbers as numbers, and as LaTeX with intervals."""

from __future__ import annotations

import re

import polars as pl

from memlab.report import units
from memlab.report.view_model import ReportView
from memlab.support.text.display import EMPTY, safe_line

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$",
        EMPTY: "--", "−": "$-$", **{sign: f"\\{sign}" for sign in "&%$#_{}"}}


def csv(view: ReportView) -> str:
    """Return one row per arm in the report's order: for each metric the value and the ends of its 95 % interval.

    Shares lie between 0 and 1, processor time is in seconds. A name that a spreadsheet would run as a formula gets an
    apostrophe.
    """
    rows = []
    for row in view.rows:
        ends = {f"{metric} {end}": cell.ends and cell.ends[i] for metric, cell in zip(view.columns, row.cells)
                for i, end in enumerate(("low", "high"))}
        values = {name: cell.value for name, cell in zip([*view.columns, "tokens", "K", "seconds"], row.cells)}
        rows.append({"arm": re.sub(r"^(?=[\s\"']*[=+\-@|＝＋－＠])", "'", safe_line(row.name)), **values, **ends,
                     "looks at gold": row.role == "gold"})
    return pl.DataFrame(rows, infer_schema_length=None).write_csv()


def latex(view: ReportView) -> str:
    """Return a tabular of the arms in the report's order, with 95 % intervals in brackets; it needs booktabs."""
    heads = ["arm", *(units.label(name) + " (%)" * units.is_share(name) for name in view.columns), "tokens", "K"]
    lines = [[_tex(row.name + " (looks at gold)" * (row.role == "gold")), *(
        _tex(cell.text.removesuffix(" %")) + rf" {{\scriptsize [{_tex(cell.detail.replace(' to ', ', '))}]}}" * bool(
            cell.detail) for cell in row.cells[:-1])] for row in view.rows]
    head, *body = (" & ".join(cells) + r" \\" for cells in [[_tex(name) for name in heads], *lines])
    return "\n".join([rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule", head, r"\midrule", *body,
                      r"\bottomrule", r"\end{tabular}", ""])


def _tex(text: str) -> str:
    """Escape a text for LaTeX.

    >>> print(_tex("best_weights, 100 %"))
    best\\_weights, 100 \\%
    """
    return re.sub(r"[\\~^<>−–&%$#_{}]", lambda match: _TEX[match[0]], safe_line(text))
