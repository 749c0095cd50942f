"""The rules for dates against a hand-labelled list of 200 expressions, and against dateparser if it is installed.

    python experiments/write_side/dates.py            # seconds; pip install dateparser for the comparison

``tests/support/text/temporal/dates_200.tsv`` holds in each row a sentence, the day on which it is said, the
expression and its ISO form ("" where nothing may be resolved). Three measures, by part (the rules were tuned on the
first 120, never on the other 80):

* exact: the sentence gives the labelled form and nothing else;
* kind, for libraries that return single days: every day found lies within the labelled span, and at least one is
  found; where nothing may be resolved, none is found;
* given the expression: the parser gets the expression alone (``dateparser.parse``), so that finding it does not count;
  a day within the labelled span is right. The rules see the sentence and must find a span that overlaps it.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

from memlab.support.text.temporal.calendar import months
from memlab.support.text.temporal.resolve import find_expressions

LIST = Path(__file__).parents[2] / "tests" / "support" / "text" / "temporal" / "dates_200.tsv"
Row = dict[str, str]


def days_of(form: str) -> tuple[date, date]:
    """Return the first and last day of an ISO form: a day, time, month, year, or an interval of these."""
    first, _, last = form.partition("/")
    ends = []
    for end, text in enumerate((first, last or first)):
        day = text.partition("T")[0]
        if len(day) == 10:
            ends.append(date.fromisoformat(day))
        elif len(day) == 7:
            month = date.fromisoformat(f"{day}-01")
            ends.append(months(month, 1)[1] if end else month)
        else:
            ends.append(date(int(day), 12, 31) if end else date(int(day), 1, 1))
    return ends[0], ends[1]


def within(day: date, form: str) -> bool:
    """Return whether a day lies within a form."""
    first, last = days_of(form)
    return first <= day <= last


def rules_exact(row: Row) -> bool:
    """Return whether the rules give the labelled form and nothing else."""
    return "; ".join(f.value for f in find_expressions(row["sentence"], time_of(row))) == row["expected"]


def rules_kind(row: Row) -> bool:
    """Return whether the rules' first days pass the test for libraries of single days."""
    return kind([days_of(f.value)[0] for f in find_expressions(row["sentence"], time_of(row))], row)


def rules_on_expression(row: Row) -> bool:
    """Return whether a result that overlaps the labelled expression has its first day within the span."""
    at = row["sentence"].lower().index(row["expression"].lower())
    return any(f.start < at + len(row["expression"]) and at < f.end and within(days_of(f.value)[0], row["expected"])
               for f in find_expressions(row["sentence"], time_of(row)))


def kind(days: list[date], row: Row) -> bool:
    """Return whether days were found, all within the span; or none where nothing may be resolved."""
    return bool(days) == bool(row["expected"]) and all(within(day, row["expected"]) for day in days)


def time_of(row: Row) -> datetime:
    """Return the time at which the sentence is said."""
    return datetime.fromisoformat(row["said_on"])


def libraries() -> dict[str, dict[str, Callable[[Row], bool]]]:
    """Return dateparser's tests for each of its settings; empty if it is not installed."""
    try:
        import dateparser
        from dateparser.search import search_dates
    except ImportError:
        return {}
    tests = {}
    for prefers in ("past", "current_period"):
        def options(row: Row, prefers: str = prefers) -> dict[str, object]:
            return {"RELATIVE_BASE": time_of(row), "PREFER_DATES_FROM": prefers, "DATE_ORDER": "MDY"}

        def search(row: Row, options: Callable[[Row], dict[str, object]] = options) -> bool:
            hits = search_dates(row["sentence"], languages=["en"], settings=options(row)) or []
            return kind([moment.date() for _, moment in hits], row)

        def parse(row: Row, options: Callable[[Row], dict[str, object]] = options) -> bool:
            moment = dateparser.parse(row["expression"], languages=["en"], settings=options(row))
            return moment is not None and within(moment.date(), row["expected"])

        name = f"dateparser {dateparser.__version__}, prefer {prefers}"
        tests[name] = {"kind": search, "given the expression": parse}
    return tests


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    warnings.filterwarnings("ignore")
    with LIST.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    rules = {"exact": rules_exact, "kind": rules_kind, "given the expression": rules_on_expression}
    print("| method | measure | tuned on (120) | held out (80) | nothing to resolve (25 of the 200) | seconds |")
    print("|---|---|--:|--:|--:|--:|")
    for way, measures in {"rules": rules, **libraries()}.items():
        for name, is_right in measures.items():
            start = time.perf_counter()
            results = [(row, is_right(row)) for row in rows if row["expected"] or name != "given the expression"]
            seconds = time.perf_counter() - start
            cells = []
            tuned_on = [right for row, right in results if row["part"] == "tune"]
            held_out = [right for row, right in results if row["part"] != "tune"]
            for some in (tuned_on, held_out, [right for row, right in results if not row["expected"]]):
                cells.append(f"{sum(some)}/{len(some)} = {sum(some) / len(some):.3f}" if some else "")
            print(f"| {way} | {name} | {' | '.join(cells)} | {timedelta(seconds=seconds).total_seconds():.2f} |")


if __name__ == "__main__":
    main()
