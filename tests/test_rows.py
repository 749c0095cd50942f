"""The table of all that the write-ups name: its page is up to date, and what it names is there."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.test_structure import ROOT

TABLE: dict[str, Any] = runpy.run_path(str(ROOT / "experiments/systems/rows.py"))
ROW = {"what": "BM25", "state": "works", "file": "memlab/stages/search/bm25.py",
       "run": "memlab run search/lexical=bm25",
       "test": "tests/stages/search/test_bm25.py::test_equals_bm25s"}


def test_every_file_test_and_choice_is_there_and_the_page_has_them_all() -> None:
    rows = TABLE["rows"]()
    assert not TABLE["faults"](rows)
    assert {name: len(of) for name, of in rows.items()} == {
        "rag_v1": 55, "elizaos": 23, "memorystack": 41, "gimli": 18, "oltramem": 19, "toolkit": 14}
    assert (ROOT / "docs/rows.md").read_text(encoding="utf-8") == TABLE["page"](rows)


@pytest.mark.parametrize(("changed", "fault"), [
    ({"file": "memlab/stages/search/bm24.py"}, "there is no file memlab/stages/search/bm24.py"),
    ({"test": "tests/stages/search/test_bm24.py"}, "there is no test tests/stages/search/test_bm24.py"),
    ({"test": "tests/stages/search/test_bm25.py::test_equals"}, "has no test_equals"),
    ({"run": "memlab run search/lexical=bm24"}, "there is no search/lexical=bm24"),
    ({"run": "memlab run +exp=bm25"}, "there is no exp=bm25"),
    ({"state": "missing"}, "the state is 'missing'"),
    ({"state": "needs luck"}, "the state is 'needs luck'"),
    ({"state": "partly"}, "says why"),
    ({"why": "It rains."}, "says why"),
    ({"note": "It rains."}, "expected what, state, why, file, run and test"),
])
def test_a_row_that_names_what_is_gone_is_a_fault(changed: dict[str, str], fault: str) -> None:
    assert not TABLE["faults"]({"gimli": [ROW]})
    (said,) = TABLE["faults"]({"gimli": [{**ROW, **changed}]})
    assert said.startswith("gimli, row 1 (BM25): ")
    assert fault in said
