"""What is compared with what is said beside the marks, in every form of the report."""

from __future__ import annotations

import io

from rich.console import Console

from memlab.report.build import Built
from memlab.report.comparators import against
from memlab.report.console import print_comparison


def rows(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"arm": arm, "comparator": other} for arm, other in pairs]


def test_every_arm_is_named_once_with_all_that_it_is_compared_with() -> None:
    declared = rows(("best", "plain"), ("best", "gimli"))
    assert against({"contrasts": declared, "exploratory": rows(("best", "plain"), ("gimli", "plain"))}) == (
        "best with plain and gimli, gimli with plain")
    assert against({"exploratory": rows(("a", "x"), ("b", "x"), ("c", "x"))}) == "all with x"
    assert against({}) == ""


def test_page_document_and_terminal_say_it(report: Built) -> None:
    told = against(report.comparison)
    assert told
    assert told in report.html.read_text()
    assert told.replace("_", "\\_") in report.markdown.read_text() or told in report.markdown.read_text()
    out = io.StringIO()
    print_comparison(report.comparison, Console(file=out, width=400))
    assert told in out.getvalue()
