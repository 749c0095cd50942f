from __future__ import annotations

import io
import warnings
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from memlab.__main__ import main
from memlab.support.console import Console
from memlab.support.terminal import clean_logs, print

TITLE = "\x1b]0;pwned\x07"


def test_print_escapes_what_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print("a", TITLE, "b\u202e", sep="|", end="\n\n")
    assert capsys.readouterr().out == "a|\\x1b]0;pwned\\x07|b\\u202e\n\n"


def test_print_holds_no_key_except_one_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    print("http://me:hello@host")
    print("sk-hello12345", secret=True)
    assert capsys.readouterr().out == "http://***@host\nsk-hello12345\n"


@pytest.mark.parametrize("content", [Text(f"a{TITLE}b"), f"a{TITLE}b"])
def test_a_console_escapes_texts_and_cells_and_keeps_its_own_styles(content: Text | str) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system="standard", legacy_windows=False)
    console.print(content)
    table = Table("head")
    table.add_row(content)
    console.print(table)
    console.print("[red]red[/red]")
    text = out.getvalue()
    assert "\x07" not in text
    assert "\x1b]" not in text
    assert text.count("a\\x1b") == 2
    assert "\x1b[31mred\x1b[0m" in text


def test_warnings_are_escaped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    clean_logs()
    text = warnings.formatwarning(f"bad {TITLE} http://me:hello@host", UserWarning, "a.py", 3)
    assert text == "a.py:3: UserWarning: bad \\x1b]0;pwned\\x07 http://***@host\n"


@pytest.mark.parametrize("command", [
    "mcp memory=a memory=b", "ask now=2024 now=2025 Why?", "train probability file=a file=b",
    "train ranker out=a out=b", "train encoder rate=1 rate=2", "experiment gpu size=real size=small",
    "store info store=a store=b", "data check data.path=a data.path=b", "status out=a out=b",
    "judge a.jsonl chat.url=a chat.url=b", "questions a data=b chat=a chat=b"])
def test_no_command_takes_one_of_two_values(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status = main(command.split())
    except SystemExit as ended:  # of a parser
        status = int(ended.code or 0)
    told = "".join(capsys.readouterr())
    assert status == 2
    assert "is given 2 times; give it once" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("encoding", "text"), [
    ("ascii", "Zo\\xeb \\u2013 \\u6771\n"), ("latin-1", "Zoë \\u2013 \\u6771\n"), ("utf-8", "Zoë – 東\n")])
def test_letters_that_a_terminal_lacks_are_escaped(encoding: str, text: str) -> None:
    for way in ("print", "secret", "console"):
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
        if way == "console":
            Console(file=out, width=80).print(Text("Zoë – 東"))
        else:
            print("Zoë – 東", file=out, secret=way == "secret")
        out.flush()
        assert raw.getvalue() == text.encode(encoding)
