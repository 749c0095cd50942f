"""MemoryCode: a rule that was replaced is outdated, one beside it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stale.memorycode import MemoryCode

from tests.data.official_records import write

pytestmark = pytest.mark.nightly


def session(text: str, *rules: tuple[str, str, str], task: str = "a function") -> dict[str, Any]:
    """rules: object, pattern and topic of each."""
    return {"type": ["filler-add", *["instruction-add"] * len(rules)], "topic": ["small talk", *(r[2] for r in rules)],
            "session_regex": [[thing, pattern] for thing, pattern, _ in rules], "text": text,
            "session_eval_query": [task] * len(rules)}


DIGIT, OLD, NEW = (("function", r"\d$", "always use a digit in function names"),
                   ("function", "^a_", "always start function names with a_"),
                   ("function", "^b_", "always start function names with b_"))
DIALOGUE = {"context": {"mentor": "Ann"}, "sessions": [
    session("Ann: Hello.\n\nBob: Hi.\n\nAnn: Always use a digit in function names.", DIGIT, task="a sort"),
    session("Bob: Ready.\n\nAnn: Always start function names with a_, please.", OLD),
    session("Ann: As I told you.", NEW, task="a search") | {"history_regex": [[*DIGIT[:2]], [*NEW[:2]]]}]}


def test_the_last_session_of_a_rule_is_evidence_and_rules_that_it_replaced_are_outdated(tmp_path: Path) -> None:
    write(tmp_path / "dialogue_3.json", DIALOGUE)
    tables = MemoryCode(path=tmp_path).load()
    assert tables["evidence"].rows() == [(0, 0, 2), (1, 2, None)]  # no turn of the last session tells the rule
    assert tables["outdated"].rows() == [(1, 1, 1)]
    assert tables["ids"].filter(kind="question")["name"][0] == r"dialogue_3:function:\d$"
