"""Help pages: prose is filled, what is indented stays as it is."""

from __future__ import annotations

import contextlib
import io

import pytest

from memlab.__main__ import COMMANDS, main
from memlab.support.help_text import page

SECOND = (["train", "reranker"], ["train", "encoder"], ["train", "ranker"], ["train", "pairs"], ["serve", "stop"],
          ["experiment", "gpu"], ["track", "sync"], ["data", "check"], ["data", "show"])


@pytest.mark.parametrize("words", [*([name] for name in COMMANDS), *SECOND])
def test_help_has_no_marks_of_code_and_no_torn_lines(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    lines = out.getvalue().splitlines()
    assert len(lines) > 1
    assert "`" not in out.getvalue()
    assert [line for line in lines if len(line) > 80 and not line.lstrip().startswith("memlab ")] == []


def test_prose_is_filled_and_examples_stay_lines_to_paste() -> None:
    text = """Ask ``memlab``, a question
    that goes on.

        memlab ask system=best "What did Caroline research in the year before last?"
    """
    assert page(text, 40) == ("Ask memlab, a question that goes on.\n\n"
                              '    memlab ask system=best "What did Caroline research in the year before last?"')
