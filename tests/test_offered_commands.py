"""Commands that messages, help pages, ``memlab explain`` and the comments of ``conf`` offer."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from memlab.__main__ import COMMANDS, main
from memlab.commands.explain import explain
from memlab.experiment.config.choices import all_choices
from memlab.experiment.config.instantiate import CONF
from memlab.experiment.config.overrides import groups
from memlab.experiment.harness.sweep import read
from memlab.support.errors import Faults
from tests.examples import rest_at_night

PACKAGE = Path(__file__).resolve().parents[1] / "memlab"
VERBS = {"again", "and", "does", "has", "import", "itself", "knows", "may", "reads", "runs", "ships", "that", "writes"}
"""Words that follow the name memlab in sentences that offer no command."""

OFFERED = re.compile(r"\bmemlab ([a-z]+)((?: (?:\+?[\w./@-]+=[^\s,;:)`]*|--?[a-z][\w-]*|[a-z]+(?=$|[ `]|\n)))*)")


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and texts of the strings of a module that are no docstrings; what is filled in is ``FILLED``."""
    beside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    beside |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in beside:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(getattr(part, "value", "") if isinstance(part, ast.Constant) else "FILLED"
                                       for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def offers() -> list[tuple[str, str, tuple[str, ...]]]:
    """Place, command and its flags and settings, for each command in a sentence of memlab."""
    return [(f"{file.relative_to(PACKAGE)}:{line}", match[1], tuple(match[2].split()))
            for file in sorted(PACKAGE.rglob("*.py")) for line, text in sentences(ast.parse(file.read_text("utf-8")))
            for match in OFFERED.finditer(text)]


@cache
def help_of(*command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as page, contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return page.getvalue()


def test_every_command_that_a_sentence_offers_exists_with_its_flags() -> None:
    found = offers()
    strange = [(place, command) for place, command, _ in found if command not in {*COMMANDS, *VERBS}]
    strange += [(place, f"{command} {word}") for place, command, words in found if command in COMMANDS for word in words
                if word.startswith("--") and word not in help_of(command)
                and not any(word in help_of(command, other) for other in words if other.isalpha())]
    assert strange == []
    assert len(found) > 60


def test_the_commands_of_commands_exist_too() -> None:
    assert [(place, command, words) for place, command, words in offers()
            if command in ("data", "train", "store", "memory", "completion") and words and words[0].isalpha()
            and not re.search(rf"\b{words[0]}\b", help_of(command))] == []


def lines_in_comments() -> list[str]:
    """Each line in the comments of ``conf`` that is a command of a run; a line that ends in a backslash goes on.

    An experiment as it is (``+exp=NAME`` alone) is composed in ``tests/experiment/config/test_composition.py``.
    """
    joined = {re.sub(r" *\\\n# *", " ", entry.path.read_text("utf-8")) for entry in all_choices(CONF).values()}
    return sorted({line for page in joined for line in re.findall(r"^# *(memlab run \S+ \S.+)$", page, re.M)})


@pytest.mark.parametrize("line", rest_at_night(lines_in_comments(), lines_in_comments()[3::5]))
def test_lines_in_the_comments_of_conf_make_arms(line: str, tmp_path: Path) -> None:
    (tmp_path / "FILE").touch()
    filled = re.sub(r"\b(FILE|FOLDER)\b", str(tmp_path / "FILE"), line).replace("PORT", "9").replace("URL", "http://h/v1")
    words = shlex.split(re.split(r"\s{2,}", filled)[0])[2:]   # what stands behind two blanks is a remark
    given = [word for word in words if word != "-m" and not word.endswith("...")]
    trained = re.search(r"FIT|M/fold", line)   # the files of a model that the reader has trained
    with pytest.raises(Faults, match="No such file") if trained else contextlib.nullcontext():
        assert read([*dict.fromkeys([*given, "plan=true"])], "-m" in words).arms


def test_what_explain_offers_is_explained() -> None:
    offered = [name for slot in groups() for name in re.findall(r"memlab explain ([\w/]+) has", explain(slot))]
    assert len(offered) > 30
    assert all(explain(name) for name in offered)
