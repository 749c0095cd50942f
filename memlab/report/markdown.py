"""The report as Markdown: the whole document, and a summary for terminals and notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memlab.evaluate.compare import judge_metrics
from memlab.evaluate.curves import CurvePoint
from memlab.evaluate.summary import calibration_error
from memlab.report import arm_settings, effects, figures, sections, units
from memlab.report.arms_table import ALONE, verdict_badges
from memlab.report.view_model import ContrastRow, ReportView
from memlab.support.text import display

LISTED = 25
"""Differing questions that are named; all of them lie in questions.parquet."""

KS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)
"""Constant K that are named in place of the curve; all of them lie in comparison.json."""


def escape(text: object) -> str:
    """Escape foreign text for a table cell: one line, nothing read as Markdown or HTML.

    >>> print(escape("a|b <b> *x*\\n_y_"))
    a\\|b &lt;b&gt; \\*x\\* \\_y\\_
    >>> escape("an_arm")
    'an_arm'
    """
    safe = display.safe_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", safe)  # an underscore inside a word is safe


def code(text: object) -> str:
    """Format a name as code; a backtick or pipe inside it would end it and is replaced.

    >>> code("session/recall_all@5")
    '`session/recall_all@5`'
    """
    return "`" + display.safe_line(text).replace("`", "'").replace("|", "¦") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    """Return a Markdown table; columns from ``numbers_from`` on are right-aligned."""
    rule = ["---" if i < numbers_from else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows]) + "\n"


def plain(one: sections.PlainTable) -> str:
    """Return a table of texts with its caption and remark."""
    body = table([escape(name) for name in one.head], [[escape(cell) for cell in row] for row in one.rows],
                 one.numbers_from)
    return join(f"{escape(one.caption)}:", body, escape(one.remark))


def join(*parts: str) -> str:
    """Join the blocks that are not empty by blank lines."""
    return "\n\n".join(part.strip("\n") for part in parts if part)


def bullets(texts: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"* {text}" for text in texts)


def document(view: ReportView) -> str:
    """Render the report; it has the order of the HTML page, and figures in place of the charts."""
    parts = [f"# {escape(view.title)}", _data(view), "## Verdict", _verdict(view)]
    drawn = figures.drawn_metric(view.opening)
    if curves := figures.constant_k(view):
        parts += ["## Evidence against tokens", *(text for name, curve in curves.items() for text in (
            f"What a constant K shows{' of the ranking of ' * bool(name)}{escape(name)}, on {code(drawn)}:",
            _curve(drawn, curve)))]
    parts += ["## All arms", _arms(view)]
    if view.differing:
        parts += ["## Where they differ", _questions(view)]
    if view.declared or view.exploratory:
        parts += ["## Contrasts", bullets(f"**{escape(row.words)}**" for row in view.declared)
                  or "No contrast was declared: every difference below is exploratory."]
    if view.exploratory:
        parts += ["### Exploratory, where any question differs (no correction: to be confirmed elsewhere)",
                  _contrasts(view.exploratory)]
    if view.types:
        parts += ["## By question type", *map(_types, view.types)]
    if bins := [(arm.name, b) for arm in view.arms for b in arm.manifest["reliability"]]:
        errors = [(arm.name, error) for arm in view.arms
                  if (error := calibration_error(arm.manifest["reliability"])) is not None]
        told = ", ".join(f"{escape(name)} {display.format_number(error)}" for name, error in errors)
        parts += ["## Reliability of learned estimates", f"Expected calibration error: {told}.", table(
            ["arm", "estimated", "observed", "n"],
            [[escape(name), *(display.format_number(b.get(key)) for key in ("estimated", "observed", "n"))]
             for name, b in bins])]
    for section in view.sections:
        parts += [f"## {section.title}", *map(plain, section.tables), escape(section.hint)]
    if view.settings:
        parts += ["## Settings", "Those in which the arms differ:", table(
            ["setting", "value", "arms that have it"],
            [[code(name), escape(value), escape(", ".join(names))] for name, row in view.settings.items()
             for value, names in row.items()], 3)]
    parts += ["## Statistics", f"{view.pairing.capitalize()}.", _contrasts(view.declared) if view.declared else "",
              bullets(f"**{term}**: {meaning}" for term, meaning in effects.TERMS),
              bullets(map(escape, view.comparison["notes"])), "## Provenance", _provenance(view)]
    return join(*parts) + "\n"


def summary(view: ReportView, arm: str | None = None) -> str:
    """Return what a terminal shows below the verdict: the arms, or one arm's figures, the contrasts and the notes."""
    return join(
        _data(view), _figures(view, arm) if arm else _few_columns(view),
        bullets(escape(row.words) for row in view.declared), _notices(view),
        bullets(map(escape, view.comparison["notes"])))


def _data(view: ReportView) -> str:
    return f"{escape(view.comparison['experiment'])} on {escape(view.opening.data)}."


def sure(view: ReportView) -> str:
    """Return how sure the verdict is."""
    return bullets(map(escape, view.opening.sure))


def _verdict(view: ReportView) -> str:
    sentence = view.opening.sentence
    commands = [f"{escape(label)}\n\n{_code_block(text)}" for label, text in view.opening.act]
    return join(f"**{escape(sentence)}**" if sentence else "", sure(view), *commands, _notices(view))


def _notices(view: ReportView) -> str:
    return "\n>\n".join(f"> **{heading}:** {escape(sentence)}" for heading, sentence in view.notices)


def _code_block(text: str) -> str:
    """Return words to copy as a block of code; a fence in them cannot end it.

    >>> _code_block("memlab ask")
    '```\\nmemlab ask\\n```'
    """
    lines = [display.safe_text(line) for line in text.splitlines()]
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return "\n".join([fence, *lines, fence])


def _contrasts(rows: Sequence[ContrastRow]) -> str:
    return table(["arm", "against", "metric", *(name for name, _ in rows[0].facts)],
                 [[escape(r.result["arm"]), escape(r.result["comparator"]), code(r.result["metric"]),
                   *(escape(v) for _, v in r.facts)] for r in rows], 3)


def _arms(view: ReportView) -> str:
    roles = {"winner": "winner", "comparator": "compared with"}
    rows = []
    for row in view.table.rows:
        badges = [*([roles[row.role]] if row.role in roles else []), *row.badges]
        name = (f"**{escape(row.name)}**" if row.role == "winner" else escape(row.name)) + "".join(
            f" ({escape(b)})" for b in badges)
        rows.append([name, *("".join(sign for sign, _ in c.marks) + " " * bool(c.marks) + c.text
                             + (f" ({c.detail})" if c.detail else "") for c in row.cells)])
    legend = ("In brackets the 95 % interval. ▲ ▼ higher or lower in a declared contrast (corrected p &lt; .05), "
              "△ ▽ in another, before any correction: a hint alone. "
              "Tokens and K are means per question; time is the processor's in the arm's own stages.")
    head = ["arm", *(code(name) if "/" in name else name for name, _ in view.table.heads)]
    return "\n".join([table(head, rows), *([escape(view.table.same) + "\n"] if view.table.same else []), legend])


def _few_columns(view: ReportView) -> str:
    """Return the arms with the verdict's metric, tokens, K and processor time: what fits on a terminal."""
    first, rows = view.columns[:1], []
    for row in view.rows:
        shown = row.cells[:len(first)] + row.cells[len(view.columns):]
        name = f"{'▸ ' if row.role == 'winner' else ''}{escape(row.name)}"
        rows.append([name + "".join(f" ({escape(badge)})" for badge in row.badges),
                     *(cell.text + (f" ({cell.detail})" if cell.detail else "") for cell in shown)])
    named = [f"{escape(units.label(metric))} ({code(metric)})" for metric in first]
    others = f"{display.plural(len(view.columns) - 1, 'more metric')} in the report" if len(view.columns) > 1 else ""
    return join(table(["arm", *map(units.label, first), "tokens", "K", "processor time"], rows),
                "; ".join([*named, *filter(None, [others])]) + ("." if named or others else ""))


def _figures(view: ReportView, name: str) -> str:
    """Return one arm's figures, a line each."""
    arm = view.comparison["arms"][name]
    judges = [metric for metric in judge_metrics(view.comparison) if metric in arm["metrics"]]
    costs = ("answer/prompt_tokens_mean", "answer/completion_tokens_mean") if judges else ()
    rows = []
    for metric in [*judges, *ALONE, "context/tokens_mean", "selected/k_mean", *costs]:
        if estimate := arm["metrics"].get(metric):
            write = display.format_count if metric.endswith("_mean") else display.format_number
            interval = display.format_interval(estimate["low"], estimate["high"], write)
            rows.append([code(metric), write(estimate["value"]), interval])
    rows.append(["processor time", display.format_duration(arm["seconds"]), ""])
    others = len(view.comparison["arms"]) - 1
    return join(table([escape(name), "", "95 % interval"], rows), bullets(map(escape, verdict_badges(arm))),
                f"Beside it in the report: {display.plural(others, 'other arm')}." if others else "")


def _types(types: sections.TypeTable) -> str:
    head = [code(types.metric), *(f"{escape(name)} (n = {size:,})" for name, size in types.types)]
    return table(head, [[escape(name), *(text for text, _ in cells)] for name, cells in types.rows])


def _curve(metric: str, points: Sequence[CurvePoint]) -> str:
    kept = [p for p in points if p["k"] in KS]
    rows = [[str(p["k"]), display.format_count(p["tokens"]), units.write(metric, p["value"])] for p in kept]
    return table(["K", "tokens", "value"], rows, 0)


def _questions(view: ReportView) -> str:
    found, pair = view.differing, view.pair
    assert pair is not None
    rest = f" (the first {LISTED} of {len(found)})" if len(found) > LISTED else ""
    title = f"{escape(pair.arm)} and {escape(pair.other)} on {code(pair.metric)}{rest}:"
    rows = [[str(r.question), escape(r.kind), escape(r.text[:300]), escape(r.answer[:200]), r.one, r.two]
            for r in found[:LISTED]]
    head = ["question", "type", "text", "gold answer", escape(pair.arm), escape(pair.other)]
    return join(title, table(head, rows, 4))


def _provenance(view: ReportView) -> str:
    shared, differing = view.manifests
    commands = arm_settings.commands(view.arms)
    return join(
        f"Made by {', '.join(map(code, commands))}." if commands else "",
        table(["shared by all arms", ""], [[code(k), escape(v)] for k, v in shared.items()], 2),
        table(["differing", *(escape(arm.name) for arm in view.arms)],
              [[code(k), *map(escape, v.values())] for k, v in differing.items()]) if differing else "",
        table(["arm", "folder"], [[escape(arm.name), code(arm.folder.name)] for arm in view.arms], 2),
        f"Older runs of the same arms, not used: {', '.join(map(code, view.older))}." if view.older else "")
