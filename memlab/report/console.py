"""The opening of every report, and the comparison as a table on the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlab.evaluate.compare import ArmSummary, Comparison
from memlab.evaluate.verbalise import opponent
from memlab.evaluate.verdict import winner, winning_arm
from memlab.report import view_model
from memlab.text.display import format_count, format_duration, format_interval, format_number, one_line

if TYPE_CHECKING:
    from rich.text import Text

    from memlab.runtime.console import Console

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


_STYLES = {"up": "bold blue", "down": "bold red", "same": "yellow", "open": "default"}


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print the arms with intervals, marks, tokens and seconds, then the declared contrasts in words.

    Names and texts are printed as plain text: markup in them has no effect and no escape sequence survives.
    """
    from rich.table import Table
    from rich.text import Text

    from memlab.runtime.console import Console

    console = console or Console()
    columns = view_model.metric_columns(comparison)
    narrow = console.width < 26 + 15 * (len(columns) + 3)
    if narrow:  # intervals wrap under their figures; fewer metrics keep each on one line
        columns = columns[: max(1, (console.width - 46) // 17)]
    console.print(_title(comparison))
    table = Table(header_style="", padding=(0, 1), show_edge=False)
    table.add_column("arm", overflow="fold")
    for metric in columns:
        table.add_column(Text(metric.replace("/", "/\n") if narrow else metric.rpartition("/")[0] + "\n"
                              + metric.rpartition("/")[2]), justify="right")
    for name in ("tokens", "K", "time"):
        table.add_column(name, justify="right")
    places = [*range(len(columns)), -3, -2, -1]
    for row in view_model.arm_rows(comparison):
        arm = Text(one_line(row.name))
        arm.append("".join(f"\n{one_line(b)}" for b in row.badges), style="dim italic")
        cells = []
        for at in places:
            cell = row.cells[at]
            text = Text("".join(sign for sign, _ in cell.marks), style="blue")
            text.append((" " if cell.marks else "") + cell.text, style="default")
            text.append(f"\n{cell.detail}" if cell.detail else "", style="dim")
            cells.append(text)
        table.add_row(arm, *cells)
    console.print(table)
    console.print(Text("▲ ▼ declared contrast, adjusted p < .05; △ ▽ exploratory; below each figure its 95 % interval; "
                       "work that arms share is timed at the first of them", style="dim"))
    if compared := view_model.compared_arms(comparison):
        console.print(Text(f"compared: {one_line(compared)}", style="dim"))
    _print_findings(comparison, console)


def print_arm(comparison: Comparison, name: str, console: Console | None = None) -> None:
    """Print one arm's figures, one per line, then the findings of the comparison; other arms are in the report."""
    from rich.table import Table
    from rich.text import Text

    from memlab.runtime.console import Console

    console = console or Console()
    arm = comparison["arms"][name]
    console.print(_title(comparison))
    table = Table(header_style="", padding=(0, 1), show_edge=False)
    table.add_column(Text(one_line(name)), overflow="fold")
    table.add_column("", justify="right")
    table.add_column("95 % interval", justify="right")
    judged = [m for m in view_model.judge_metrics(comparison) if m in arm["metrics"]]
    costs = ("answer/prompt_tokens_mean", "answer/completion_tokens_mean") if judged else ()
    for metric in [*judged, *view_model.ALONE, "context/tokens_mean", "selected/k_mean", *costs]:
        if metric in arm["metrics"]:
            estimate = arm["metrics"][metric]
            write = format_count if metric.endswith("_mean") else format_number
            table.add_row(metric, write(estimate["value"]), format_interval(estimate["low"], estimate["high"], write))
    for words in view_model.verdict_badges(arm):
        table.add_row(Text(one_line(words)), "", "")
    table.add_row("time", format_duration(arm["seconds"]), "")
    console.print(table)
    others = len(comparison["arms"]) - 1
    if others:
        console.print(Text(f"beside it in the report: {others} other arm{'s' if others > 1 else ''}", style="dim"))
    _print_findings(comparison, console)


def _title(comparison: Comparison) -> Text:
    from rich.text import Text

    scored, questions = comparison["scored"], comparison["questions"]
    counted = "" if scored == questions else f", {scored:,} of them count for retrieval"
    title = f"{comparison['experiment']} on {comparison['data']}: {questions:,} questions{counted}"
    return Text(one_line(title), style="bold")


def _print_findings(comparison: Comparison, console: Console) -> None:
    """Print the verdict, the contrasts in words, the notices and the notes."""
    from rich.text import Text

    for i, sentence in enumerate(opening(comparison)):
        console.print(Text(one_line(sentence), style="bold" if i == 0 else "default"))
    for contrast in view_model.contrast_rows(comparison):
        console.print(Text("• ").append(one_line(contrast.words), style=_STYLES[contrast.tone]))
    for heading, sentence in view_model.notices(comparison):
        console.print(Text(f"! {heading}: ", style="yellow").append(one_line(sentence), style="default"))
    for note in view_model.notes(comparison):
        console.print(Text(f"  {one_line(note)}", style="dim"))
