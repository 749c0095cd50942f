"""Tables of cost and latency of a comparison's arms."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.evaluate import costs as costing
from memlab.evaluate.compare import ArmSummary, Comparison, judge_metrics
from memlab.evaluate.costs import COMPLETE, STAGES, Price, latency, per, price_table, spending
from memlab.experiment.harness.results import ArmRun
from memlab.report.sections import PlainTable
from memlab.support.text.display import EMPTY, format_number, is_number


def cost_tables(comparison: Comparison, arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Return the tables of cost, of latency by stage and of waits for replies."""
    prices, *_ = price_table()
    found = [costs(comparison, arms, prices), latencies(arms), replies(arms, prices)]
    return [one for one in found if one.rows]


def costs(comparison: Comparison, arms: Sequence[ArmRun], prices: dict[str, Price]) -> PlainTable:
    """Return what each arm paid for replies of chat models."""
    judge = next(iter(judge_metrics(comparison)), None)
    rows, unpriced = [], set[str]()
    for arm in arms:
        spent, summary = spending(arm.manifest, prices), comparison["arms"][arm.name]
        unpriced |= {*spent.unpriced}
        whole = None if spent.writing is None or spent.question is None else (
            spent.writing + spent.question * arm.manifest["questions"])
        rows.append((arm.name, *map(format_number, (spent.replies, spent.read, spent.written)),
                     *map(dollars, (spent.writing, spent.question, per(spent.question, complete(summary)),
                                    per(spent.question, _value(summary, judge)), whole,
                                    spent.question and 1e6 * spent.question))))
    dated = "; ".join(f"{name} {price.input:g} and {price.output:g} ({price.date}, {price.source})"
                      for name, price in prices.items())
    remark = ("US dollars; 0 for an arm that asks no chat model. Judges are not counted. Prices per million tokens "
              f"read and written: {dated}.")
    if unpriced:
        remark += f" No price is known for {', '.join(sorted(unpriced))} (conf/prices.yaml): no cost is given."
    return PlainTable("Cost of replies", ("arm", "replies", "tokens read", "tokens written", "writing, in all",
                                          "per question", "per complete evidence", "per right answer",
                                          "the whole run", "a million questions"),
                      tuple(rows), remark)


def latencies(arms: Sequence[ArmRun]) -> PlainTable:
    """Return the mean milliseconds of a question by stage."""
    stages = (*STAGES, "total")
    rows = []
    for arm in arms:
        means = latency(arm.manifest)
        if means:
            rows.append((arm.name, *(milliseconds(means.get(stage)) for stage in stages)))
    return PlainTable(
        "Latency of a question by stage, mean milliseconds", ("arm", *stages), tuple(rows),
        "Stages run over all questions at once, so that their times are means and have no quantiles; encodings and "
        "indexes that the store keeps are not in them. Waits for replies are, one after another. All else is the "
        "processor's time, of all cores.")


def replies(arms: Sequence[ArmRun], prices: dict[str, Price]) -> PlainTable:
    """Return the tokens, dollars and seconds of replies by slot and chat model."""
    rows = [(arm.name, slot, model,
             *(format_number(int(of[name])) for name in ("replies", "prompt_tokens", "completion_tokens")),
             dollars(prices[model].dollars(of["prompt_tokens"], of["completion_tokens"]) if model in prices else None),
             *(seconds(of.get(name)) for name in ("p50", "p95")))
            for arm in arms for slot, model, of in costing.replies(arm.manifest)]
    return PlainTable("Replies of chat models", ("arm", "slot", "model", "replies", "tokens read", "tokens written",
                                                 "dollars", "seconds, p50", "seconds, p95"), tuple(rows),
                      "Seconds are those of each reply when it was made, beside others at a time.", 3)


def complete(summary: ArmSummary) -> float | None:
    """Return the share of questions with complete evidence."""
    return next((value for name in COMPLETE if (value := _value(summary, name)) is not None), None)


def dollars(value: float | None) -> str:
    """Write dollars: whole ones from 100 on, two places from ten cents on, two significant digits below.

    >>> dollars(0.0), dollars(0.00024), dollars(0.0079), dollars(4.78), dollars(2975.7), dollars(None)
    ('0', '0.00024', '0.0079', '4.78', '2,976', '–')
    """
    if not is_number(value):
        return EMPTY
    return "0" if value == 0 else f"{value:,.{0 if value >= 100 else 2 if value >= 0.1 else _places(value)}f}"


def milliseconds(value: float | None) -> str:
    """Write milliseconds: whole ones from 100 on, below that one place.

    >>> milliseconds(0.04), milliseconds(14.6), milliseconds(150), milliseconds(None)
    ('0.0', '14.6', '150', '–')
    """
    return f"{value:,.{0 if value >= 100 else 1}f}" if is_number(value) else EMPTY


def seconds(value: float | None) -> str:
    """Write seconds with two places.

    >>> seconds(0.456), seconds(None)
    ('0.46', '–')
    """
    return f"{value:.2f}" if is_number(value) else EMPTY


def _places(value: float) -> int:
    """Return the decimals that show two significant digits; 12 at most."""
    return next((n for n in range(2, 12) if value >= 10.0 ** (1 - n)), 12)


def _value(summary: ArmSummary, metric: str | None) -> float | None:
    estimate = summary["metrics"].get(metric) if metric else None
    return estimate["value"] if estimate else None
