"""The report as Markdown: the same figures in tables, for a terminal, a diff or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memlab.evaluate.compare import Comparison
from memlab.evaluate.curves import CurvePoint
from memlab.evaluate.summary import calibration_error
from memlab.harness.results import ArmRun
from memlab.report import arm_settings, details, differing, effects, figures, sections, units, view_model
from memlab.report.opening import Opening, opening
from memlab.text.display import clean, format_count, format_number, one_line

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
    safe = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", safe)  # an underscore inside a word is safe


def code(text: object) -> str:
    """Format a name as code; a backtick or pipe inside it would end it and is replaced.

    >>> code("session/recall_all@5")
    '`session/recall_all@5`'
    """
    return "`" + one_line(text).replace("`", "'").replace("|", "¦") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    """Return a Markdown table; columns from ``numbers_from`` on are right-aligned."""
    rule = ["---" if i < numbers_from else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows]) + "\n"


def plain(one: sections.PlainTable) -> str:
    """Return a table of texts with its caption and remark."""
    body = table([escape(name) for name in one.head], [[escape(cell) for cell in row] for row in one.rows],
                 one.numbers_from)
    return "\n\n".join(part for part in (f"{escape(one.caption)}:", body.strip("\n"), escape(one.remark)) if part)


def document(comparison: Comparison, arms: Sequence[ArmRun], older: Sequence[str] = ()) -> str:
    """Render the report; it has the order of the HTML page, and figures in place of the charts."""
    found = opening(comparison)
    chosen = differing.pair(comparison, found)
    columns = view_model.metric_columns(comparison, found.metric)
    parts = [f"# {escape(effects.title(comparison, found))}",
             f"{escape(comparison['experiment'])} on {escape(comparison['data'])}. {escape(found.data)}",
             "## Verdict", _verdict(comparison, found)]
    drawn = figures.drawn_metric(found)
    if curves := figures.constant_k(comparison, found):
        parts += ["## Evidence against tokens", *(text for name, curve in curves.items() for text in (
            f"What a constant K shows{' of the ranking of ' * bool(name)}{escape(name)}, on {code(drawn)}:",
            _curve(drawn, curve)))]
    parts += ["## All arms", _arms(comparison, found)]
    if chosen and (differ := _questions(arms, chosen)):
        parts += ["## Where they differ", differ]
    declared, exploratory = (view_model.contrast_rows(comparison, kind) for kind in ("contrasts", "exploratory"))
    if declared or exploratory:
        parts += ["## Contrasts", "\n".join(f"* **{escape(row.words)}**" for row in declared)
                  or "No contrast was declared: every difference below is exploratory."]
    if exploratory:
        parts += ["### Exploratory, where any question differs (no correction: to be confirmed elsewhere)",
                  _contrasts(exploratory)]
    if kinds := sections.type_tables(arms, columns):
        parts += ["## By question type", *map(_types, kinds)]
    if bins := [(arm.name, b) for arm in arms for b in arm.manifest["reliability"]]:
        errors = [(arm.name, calibration_error(arm.manifest["reliability"])) for arm in arms]
        parts += ["## Reliability of learned estimates", "Expected calibration error: " + ", ".join(
            f"{escape(name)} {format_number(error)}" for name, error in errors if error is not None) + ".", table(
            ["arm", "estimated", "observed", "n"],
            [[escape(name), *(format_number(b.get(key)) for key in ("estimated", "observed", "n"))]
             for name, b in bins])]
    for section in details.details(comparison, arms):
        parts += [f"## {section.title}", *map(plain, section.tables), escape(section.hint)]
    if by_value := arm_settings.by_value(arms):
        parts += ["## Settings", "Those in which the arms differ:", table(
            ["setting", "value", "arms that have it"],
            [[code(name), escape(value), escape(", ".join(names))] for name, row in by_value.items()
             for value, names in row.items()], 3)]
    notes = [f"* {escape(note)}" for note in view_model.notes(comparison)]
    parts += ["## Statistics", f"{effects.pairing(comparison).capitalize()}.",
              _contrasts(declared) if declared else "",
              "\n".join(f"* **{term}**: {meaning}" for term, meaning in effects.TERMS),
              "\n".join(notes), "## Provenance", _provenance(arms, older)]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _verdict(comparison: Comparison, found: Opening) -> str:
    quotes = [f"> **{heading}:** {escape(sentence)}" for heading, sentence in view_model.notices(comparison)]
    act = [f"{escape(label)}\n\n{_code_block(text)}" for label, text in found.act]
    blocks = [f"**{escape(found.sentence)}**" if found.sentence else "",
              "\n".join(f"* {escape(sentence)}" for sentence in found.sure), *act, "\n>\n".join(quotes)]
    return "\n\n".join(block for block in blocks if block)


def _code_block(text: str) -> str:
    """Return words to copy as a block of code; a fence in them cannot end it.

    >>> _code_block("memlab ask")
    '```\\nmemlab ask\\n```'
    """
    lines = [clean(line) for line in text.splitlines()]
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return "\n".join([fence, *lines, fence])


def _contrasts(rows: Sequence[view_model.ContrastRow]) -> str:
    return table(["arm", "against", "metric", *(name for name, _ in rows[0].facts)],
                 [[escape(r.result["arm"]), escape(r.result["comparator"]), code(r.result["metric"]),
                   *(escape(v) for _, v in r.facts)] for r in rows], 3)


def _arms(comparison: Comparison, found: Opening) -> str:
    arms, body = view_model.arms_table(comparison, found), []
    roles = {"winner": "winner", "comparator": "compared with"}
    for row in arms.rows:
        badges = [*([roles[row.role]] if row.role in roles else []), *row.badges]
        name = (f"**{escape(row.name)}**" if row.role == "winner" else escape(row.name)) + "".join(
            f" ({escape(b)})" for b in badges)
        body.append([name, *("".join(sign for sign, _ in c.marks) + " " * bool(c.marks) + c.text
                             + (f" ({c.detail})" if c.detail else "") for c in row.cells)])
    legend = ("In brackets the 95 % interval. ▲ ▼ higher or lower in a declared contrast (corrected p &lt; .05), "
              "△ ▽ in another, before any correction: a hint alone. "
              "Tokens and K are means per question; time is that of the arm's own stages.")
    if compared := view_model.compared_arms(comparison):
        legend += f" Compared: {escape(compared)}."
    head = ["arm", *(code(name) if "/" in name else name for name, _ in arms.heads)]
    return "\n".join([table(head, body), *([escape(arms.same) + "\n"] if arms.same else []), legend])


def _types(types: sections.TypeTable) -> str:
    head = [code(types.metric), *(f"{escape(name)} (n = {size:,})" for name, size in types.types)]
    return table(head, [[escape(name), *(text for text, _ in cells)] for name, cells in types.rows])


def _curve(metric: str, points: Sequence[CurvePoint]) -> str:
    kept = [p for p in points if p["k"] in KS]
    rows = [[str(p["k"]), format_count(p["tokens"]), units.write(metric, p["value"])] for p in kept]
    return table(["K", "tokens", "value"], rows, 0)


def _questions(arms: Sequence[ArmRun], chosen: differing.ArmPair) -> str:
    found = differing.questions(arms, chosen)
    if not found:
        return ""
    rest = f" (the first {LISTED} of {len(found)})" if len(found) > LISTED else ""
    title = f"{escape(chosen.arm)} and {escape(chosen.other)} on {code(chosen.metric)}{rest}:"
    rows = [[str(r.question), escape(r.kind), escape(r.text[:300]), escape(r.answer[:200]), r.one, r.two]
            for r in found[:LISTED]]
    head = ["question", "type", "text", "gold answer", escape(chosen.arm), escape(chosen.other)]
    return title + "\n\n" + table(head, rows, 4)


def _provenance(arms: Sequence[ArmRun], older: Sequence[str]) -> str:
    shared, differing = arm_settings.manifests(arms)
    parts = [f"Made by {', '.join(map(code, lines))}.\n" for lines in [arm_settings.commands(arms)] if lines]
    parts.append(table(["shared by all arms", ""], [[code(k), escape(v)] for k, v in shared.items()], 2))
    if differing:
        parts.append(table(["differing", *(escape(a.name) for a in arms)],
                           [[code(k), *map(escape, v.values())] for k, v in differing.items()]))
    parts.append(table(["arm", "folder"], [[escape(a.name), code(a.folder.name)] for a in arms], 2))
    if older:
        parts.append("Older runs of the same arms, not used: " + ", ".join(map(code, older)) + ".")
    return "\n".join(parts)
