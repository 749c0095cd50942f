"""Comments as help: those of slots and settings in ``conf``, of techniques above them, of fields in their classes."""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from memlab.config.choices import TECHNIQUES, Choice
from memlab.runtime.paths import shipped_path


class Described(NamedTuple):
    """A slot or a setting of a run: its name, its default as it is written, and what it is."""

    name: str
    default: str
    text: str


BESIDE = (
    Described("exp", "", "a declared experiment: its arms, contrasts and report; +exp=NAME"),
    Described("profile", "", "models and searches for a kind of machine; +profile=gpu"),
    Described("hydra/launcher", "", "where arms run: here, in processes (local), as jobs (slurm)"),
    Described("serve", "", "models of memlab serve MODEL"),
)
"""Slots that are not in the list of defaults."""

_SLOT = re.compile(r"  - ([\w/]+): (\S+) +# (.*)")
_SETTING = re.compile(r"( *)(\w+):(?: +([^#\s]\S*))? +# (.*)")
_ENTRY = re.compile(r"( *)(- )?([\w-]+):(.*)")
_SENTENCE_END = re.compile(r"[.?](?= +[A-Z0-9\"'(`])")


@cache
def slot_lines() -> tuple[Described, ...]:
    """Return the slots of a run in the order of ``conf/config.yaml``, with their defaults."""
    return tuple(Described(*match.groups()) for match in map(_SLOT.fullmatch, _config()) if match)


@cache
def run_settings() -> tuple[Described, ...]:
    """Return the settings of a run that belong to no slot, as ``seed`` and ``learn.folds``.

    >>> run_settings()[0].name, [line.default for line in run_settings() if line.name == "learn.folds"]
    ('name', ['5'])
    """
    lines: list[Described] = []
    above = ""
    for row in _config()[_config().index("  - _self_"):]:
        match = _SETTING.fullmatch(row)
        if match and match[3] is None:
            above = f"{match[2]}."
        elif match:
            lines.append(Described((above if match[1] else "") + match[2], match[3], match[4]))
        elif lines and row.lstrip().startswith("#"):
            lines[-1] = Described(lines[-1].name, lines[-1].default, f"{lines[-1].text} {row.strip(' #')}")
    return tuple(lines)


def _config() -> list[str]:
    return (shipped_path("conf") / "config.yaml").read_text(encoding="utf-8").splitlines()


def comment(name: str, choice: Choice) -> list[str]:
    """Return the comment at the head of a choice's file, or above or beside its entry in a table, as plain lines."""
    text = choice.path.read_text(encoding="utf-8").replace("`", "").splitlines()
    if choice.settings is None:
        head = [line.removeprefix("#").removeprefix(" ") for line in takewhile(lambda line: line.startswith("#"), text)]
        return [line for line in head if not line.startswith("@package")]
    at, above = _place(name, choice, text)
    if at is None:
        return []
    beside = text[at].partition(" # ")[2]
    return [beside] if beside else above


def body(name: str, choice: Choice) -> list[str]:
    """Return the lines of a choice as its file or table states it, without the comment above."""
    text = choice.path.read_text(encoding="utf-8").splitlines()
    if choice.settings is None:
        return text[len([*takewhile(lambda line: line.startswith("#"), text)]):]
    at, _ = _place(name, choice, text)
    if at is None:
        return []
    indent = len(text[at]) - len(text[at].lstrip())
    below = takewhile(lambda line: not line.strip() or len(line) - len(line.lstrip()) > indent, text[at + 1:])
    kept = textwrap.dedent("\n".join(below)).rstrip().split("\n")
    return kept if kept != [""] else []


def _place(name: str, choice: Choice, text: list[str]) -> tuple[int | None, list[str]]:
    """Return the line of an entry in the table of its group, and the comment above; None if it is written otherwise."""
    group, _, entry = name.rpartition("/")
    head = f"{group}:" if choice.path.stem == TECHNIQUES else "arms:"
    above: list[str] = []
    inside = False
    for at, line in enumerate(text):
        if line and not line.startswith((" ", "#")):
            inside = line.split(" #")[0].rstrip() == head
        elif inside and line.startswith("  #"):
            above.append(line.strip().removeprefix("#").removeprefix(" "))
        elif inside:
            if re.match(rf"  {re.escape(entry)}:(?!\S)", line):
                return at, above
            above = []
    return None, []


def first_sentence(lines: list[str]) -> str:
    """Return the first sentence of a comment; lines to paste are passed over.

    >>> first_sentence(["memlab run +exp=x    a minute", "Which K? Of e.g. three", "rules."])
    'Which K?'
    """
    prose = [line for line in lines if not re.match(r"\s|(\.venv/bin/)?(python -m )?memlab[ .]", line)]
    text = " ".join(" ".join(takewhile(str.strip, prose)).split())
    end = _SENTENCE_END.search(text)
    return text[:end.end()] if end else text


def beside_settings(lines: list[str]) -> dict[str, str]:
    """Return place -> comment of the settings in a part of a file, ``signals.0.name``.

    >>> beside_settings(["index:", "  nlist: 32   # inverted lists", "signals:", "  - name: a  # one", "k: 1"])
    {'index.nlist': 'inverted lists', 'signals.0.name': 'one'}
    """
    found: dict[str, str] = {}
    open_keys: list[tuple[int, str]] = []
    items: dict[str, int] = {}
    for line in lines:
        match = _ENTRY.match(line)
        if not match:
            continue
        indent = len(match[1]) + len(match[2] or "")
        while open_keys and open_keys[-1][0] >= (indent if not match[2] else len(match[1]) + 1):
            open_keys.pop()
        if match[2]:
            place = ".".join(key for _, key in open_keys)
            items[place] = items.get(place, -1) + 1
            open_keys.append((len(match[1]) + 1, str(items[place])))
        open_keys.append((indent, match[3]))
        if text := match[4].partition(" # ")[2]:
            found[".".join(key for _, key in open_keys)] = text.strip()
    return found


@cache
def reasons(cls: type) -> dict[str, str]:
    """Return setting -> the comment beside or above its default, in the class or in one that it inherits from.

    >>> from memlab.rank.select import Fixed
    >>> reasons(Fixed)
    {'k': 'K of most published systems'}
    """
    bases = [base for base in reversed(cls.__mro__) if is_dataclass(base)]
    return {name: text for base in bases for name, text in _own_reasons(base)}


def _own_reasons(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # a plug-in without source
        return
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    alone = {number for number, line in enumerate(source.splitlines(), 1) if line.lstrip().startswith("#")}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    for field in definition.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            first = field.lineno
            while first - 1 in alone:
                first -= 1
            places = [*range(first, field.lineno), *range(field.lineno, (field.end_lineno or field.lineno) + 1)]
            text = " ".join(comments[place] for place in places if place in comments)
            if text and not text.startswith("noqa"):
                yield field.target.id, text
