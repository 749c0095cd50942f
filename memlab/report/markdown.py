"""The report as Markdown: the same figures in tables, for a terminal, a diff or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memlab.evaluate.compare import Comparison
from memlab.evaluate.curves import CurvePoint
from memlab.evaluate.summary import calibration_error
from memlab.harness.results import ArmRun
from memlab.report import arm_settings, console, sections, view_model
from memlab.report.sections import COLUMNS as TURN_COLUMNS
from memlab.report.sections import TURNS, turn_metrics
from memlab.text.display import EMPTY, format_count, format_number, is_number, one_line

LISTED = 25
"""Questions named for each contrast; all of them lie in questions.parquet."""

TIERS = ("Arms on one line cannot be told apart from the first of the line. This ranking was not declared before the "
         "run; its p are corrected over the arms.")


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


def document(comparison: Comparison, arms: Sequence[ArmRun], older: Sequence[str] = ()) -> str:
    """Render the report; it has the sections of the HTML page, and the figures in place of charts."""
    pairing = view_model.pairing(comparison)
    scored, questions = comparison["scored"], comparison["questions"]
    counted = "" if scored == questions else f" ({scored:,} of them count for retrieval)"
    parts = [f"# {escape(comparison['experiment'])} on {escape(comparison['data'])}",
             f"{len(comparison['arms'])} arms, {questions:,} questions{counted}, {pairing}.",
             "## Finding", _finding(comparison), "## Arms", _arms(comparison)]
    if view_model.contrast_rows(comparison, "exploratory"):
        parts += ["### Exploratory, where any question differs (no correction: to be confirmed elsewhere)",
                  _contrasts(comparison, "exploratory")]
    if turns := turn_metrics(comparison):
        parts += ["## Turns, as other benchmarks print them", table(
            ["arm", *TURN_COLUMNS], [[escape(name), *cells] for name, cells in turns]) + "\n" + TURNS]
    kinds = view_model.types(arms)
    if kinds:
        parts += ["## By question type", _types(comparison, arms, kinds)]
    classes = sections.class_tables(arms)
    if classes:
        parts += ["## Question classes", *map(_classes, classes)]
    if comparison["constant_k"]:
        parts += ["## Recall against context tokens", "Recall of each constant K:", _curve(comparison["constant_k"])]
    bins = [(arm.name, b) for arm in arms for b in arm.manifest["reliability"]]
    if bins:
        errors = [(arm.name, calibration_error(arm.manifest["reliability"])) for arm in arms]
        parts += ["## Reliability of learned estimates", "Expected calibration error: " + ", ".join(
            f"{escape(name)} {format_number(error)}" for name, error in errors if error is not None) + ".", table(
            ["arm", "estimated", "observed", "n"],
            [[escape(name), *(format_number(b.get(key)) for key in ("estimated", "observed", "n"))]
             for name, b in bins])]
    importances = sections.importance_tables(arms)
    if importances:
        parts += ["## Feature importances", *map(_importances, importances), sections.GAINS]
    if reason := sections.example(arms):
        parts.append(_reason(*reason))
    causes = sections.causes(arms)
    if causes:
        parts += ["## Why answers are wrong", *map(_causes, causes)]
    differing = _questions(comparison, arms)
    if differing:
        parts += ["## Questions on which the arms differ", differing]
    by_value = arm_settings.by_value(arms)
    if by_value:
        parts += ["## Settings", "Those in which the arms differ:", table(
            ["setting", "values, and the arms that have them"],
            [[code(name), "; ".join(f"**{escape(value)}**: {escape(', '.join(names))}" for value, names in row.items())]
             for name, row in by_value.items()], 2)]
    parts += ["## Provenance", _provenance(arms, older)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _classes(classes: sections.ClassTable) -> str:
    head = ["type", *classes.classes, "fits", "n"]
    return escape(classes.words) + ".\n\n" + table(head, [
        [escape(kind), *map(str, counts), EMPTY if fit is None else str(fit), str(n)]
        for kind, counts, fit, n in classes.rows])


def _importances(importances: sections.ImportanceTable) -> str:
    return escape(importances.arms) + ":\n\n" + table(
        ["feature", "share of the gain"], [[escape(name), share] for name, share, _ in importances.rows])


def _reason(arm: str, question: str, reason: sections.Reason) -> str:
    head = ["feature", "in the first turn", "in the second", "adds to the lead"]
    return (f"For one question of {escape(arm)}, “{escape(question)}”: {escape(reason.words)}.\n\n"
            + table(head, [[escape(cell) for cell in row] for row in sections.cells(reason)]))


def _causes(causes: sections.CauseTable) -> str:
    head = ["cause", f"wrong answers, of {causes.wrong} sampled", f"right answers, of {causes.right} sampled"]
    return escape(causes.words) + ".\n\n" + table(head, [[escape(c), str(n), str(m)] for c, n, m in causes.rows])


def _finding(comparison: Comparison) -> str:
    rows = view_model.contrast_rows(comparison)
    lines = [f"* **{escape(row.words)}**" for row in rows]
    lines = lines or ["No contrast was declared: every difference below is exploratory."]
    quotes = [f"> **{heading}:** {escape(sentence)}" for heading, sentence in view_model.notices(comparison)]
    notes = [f"* {escape(note)}" for note in view_model.notes(comparison)]
    sentences = [escape(sentence) for sentence in console.opening(comparison)]
    verdict = "\n>\n".join(f"> **{line}**" if i == 0 else f"> {line}" for i, line in enumerate(sentences))
    tiers = "\n".join(
        f"{tier}. " + ", ".join(f"{escape(name)} {value} ({tokens} tokens)" for name, value, tokens in row)
        for tier, row in console.tiers(comparison))
    blocks = [verdict, f"{tiers}\n\n{TIERS}" if tiers else "", "\n".join(lines),
              _contrasts(comparison, "contrasts") if rows else "", "\n>\n".join(quotes), "\n".join(notes)]
    return "\n\n".join(block.strip("\n") for block in blocks if block)


def _contrasts(comparison: Comparison, listed: view_model.Listed) -> str:
    rows = view_model.contrast_rows(comparison, listed)
    return table(["arm", "against", "metric", *(name for name, _ in rows[0].facts)],
                 [[escape(r.result["arm"]), escape(r.result["comparator"]), code(r.result["metric"]),
                   *(escape(v) for _, v in r.facts)] for r in rows], 3)


def _arms(comparison: Comparison) -> str:
    body = []
    for row in view_model.arm_rows(comparison):
        name = escape(row.name) + "".join(f" ({escape(b)})" for b in row.badges)
        body.append([name, *("".join(sign for sign, _ in c.marks) + " " * bool(c.marks) + c.text
                             + (f" ({c.detail})" if c.detail else "") for c in row.cells)])
    legend = ("In brackets the 95 % interval. ▲ ▼ higher or lower in a declared contrast (adjusted p &lt; .05), "
              "△ ▽ exploratory. Tokens and K are means per question.")
    if compared := view_model.compared_arms(comparison):
        legend += f" Compared: {escape(compared)}."
    head = ["arm", *map(code, view_model.metric_columns(comparison)), "tokens", "K", "time"]
    return table(head, body) + "\n" + legend


def _types(comparison: Comparison, arms: Sequence[ArmRun], kinds: Sequence[tuple[str, int]]) -> str:
    parts = []
    for metric in view_model.metric_columns(comparison):
        values = view_model.by_type(arms, metric, [name for name, _ in kinds])
        if any(v is not None for row in values for v in row):
            head = [code(metric), *(f"{escape(name)} (n = {size:,})" for name, size in kinds)]
            parts.append(table(head, [[escape(arm.name), *map(format_number, row)] for arm, row in zip(arms, values)]))
    return "\n".join(parts)


def _curve(curves: dict[str, list[CurvePoint]]) -> str:
    rows = [[format_number(points[0]["k"]), format_count(points[0]["tokens"]),
             *(format_number(point["value"]) for point in points)] for points in zip(*curves.values())]
    return table(["K", "tokens", *map(code, curves)], rows, 0)


def _questions(comparison: Comparison, arms: Sequence[ArmRun]) -> str:
    by_name, parts = {arm.name: arm for arm in arms}, []
    for contrast in comparison["contrasts"]:
        one, two, metric = by_name.get(contrast["arm"]), by_name.get(contrast["comparator"]), contrast["metric"]
        if one is None or two is None or metric not in one.questions.columns or metric not in two.questions.columns:
            continue
        pairs = one.questions.join(two.questions.select("question", other=metric), on="question").sort("question")
        differing = [row for row in pairs.iter_rows(named=True)
                     if is_number(row[metric]) and is_number(row["other"]) and row[metric] != row["other"]]
        if differing:
            rest = f" ({LISTED} of {len(differing)})" if len(differing) > LISTED else ""
            title = f"### {escape(one.name)} against {escape(two.name)} on {code(metric)}{rest}"
            rows = [[str(r["question"]), escape(r["category"] or ""), escape(r["text"])[:300],
                     escape(r["answer"] or "")[:200], format_number(r[metric], 2), format_number(r["other"], 2)]
                    for r in differing[:LISTED]]
            head = ["question", "type", "text", "gold answer", escape(one.name), escape(two.name)]
            parts += [title, table(head, rows, 4)]
    return "\n\n".join(part.strip("\n") for part in parts)


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
