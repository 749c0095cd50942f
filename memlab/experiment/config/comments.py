"""Help from comments: of slots and settings in ``conf``, of techniques, and of the fields of classes."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from memlab.experiment.config.choices import TECHNIQUES, Choice
from memlab.experiment.config.instantiate import options
from memlab.support.paths import shipped_path


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
_FIELD = re.compile(r"    (\w+): [^#]*?(?:  # (.*))?")
_SENTENCE_END = re.compile(r"[.?](?= +[A-Z0-9\"'(`])")


@cache
def slot_lines() -> tuple[Described, ...]:
    """Return the slots of a run in the order of ``conf/config.yaml``, with their defaults."""
    return tuple(Described(*match.groups()) for match in map(_SLOT.fullmatch, _config()) if match)


def slots_with(technique: str) -> list[str]:
    """Return the slots that have a technique of this name.

    >>> slots_with("gap"), slots_with("round")
    (['rank/select'], ['read/measure', 'write/chunk'])
    """
    return sorted(slot.name for slot in slot_lines() if technique in options(slot.name))


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
    return _comment_and_body(name, choice)[0]


def body(name: str, choice: Choice) -> list[str]:
    """Return the lines of a choice as its file or table states it, without the comment above."""
    return _comment_and_body(name, choice)[1]


def _comment_and_body(name: str, choice: Choice) -> tuple[list[str], list[str]]:
    text = choice.path.read_text(encoding="utf-8").splitlines()
    if choice.settings is None:
        above = [*takewhile(lambda line: line.startswith("#"), text)]
        return [line for line in _plain(above) if not line.startswith("@package")], text[len(above):]
    group, _, entry = name.rpartition("/")
    head = f"{group}:" if choice.path.stem == TECHNIQUES else "arms:"
    above, inside = [], False
    for at, line in enumerate(text):
        if line and not line.startswith((" ", "#")):
            inside = line.split(" #")[0].rstrip() == head
        elif inside and line.startswith("  #"):
            above.append(line.strip())
        elif inside and re.match(rf"  {re.escape(entry)}:(?!\S)", line):
            below = takewhile(lambda line: not line.strip() or line.startswith("   "), text[at + 1:])
            stated = textwrap.dedent("\n".join(below)).strip()
            beside = line.partition(" # ")[2]
            return _plain([beside] if beside else above), stated.splitlines()
        elif inside:
            above = []
    return [], []  # a table in another style, such as one line of JSON


def _plain(lines: list[str]) -> list[str]:
    return [line.removeprefix("#").removeprefix(" ").replace("`", "") for line in lines]


def first_sentence(lines: list[str]) -> str:
    """Return the first sentence of a comment; lines to paste are passed over.

    >>> first_sentence(["memlab run +exp=x    a minute", "Which K? Of e.g. three", "rules."])
    'Which K?'
    """
    prose = [line for line in lines if not re.match(r"\s|(\.venv/bin/)?(python -m )?memlab[ .]", line)]
    text = " ".join(" ".join(takewhile(str.strip, prose)).split())
    end = _SENTENCE_END.search(text)
    return text[:end.end()] if end else text


@cache
def reasons(cls: type) -> dict[str, str]:
    """Return setting -> the comment beside or above its default, in the class or in one that it inherits from.

    >>> from memlab.stages.rank.select import Fixed
    >>> reasons(Fixed)
    {'k': 'K of most published systems'}
    """
    bases = [base for base in reversed(cls.__mro__) if is_dataclass(base)]
    return {name: text for base in bases for name, text in _own_reasons(base)}


def _own_reasons(cls: type) -> Iterator[tuple[str, str]]:
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):  # a plug-in without source
        return
    above: list[str] = []
    for line in lines:
        if line.startswith("    # "):
            above.append(line.strip(" #"))
            continue
        field = _FIELD.fullmatch(line)
        text = " ".join([*above, *([field[2]] if field[2] else [])]) if field else ""
        if field and text and not text.startswith("noqa"):
            yield field[1], text
        above = []
