"""The patterns of memlab, and texts made of each pattern's own pieces on which a slow one shows itself.

Patterns are found, not listed: those that modules hold by a name, in containers or in objects of memlab, and those that
are written where they are used. A pattern is tried as the code uses it: one that is only ever matched at the start of a
text is not searched.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import memlab

ROOT = Path(memlab.__file__).parent
METHODS = ("match", "fullmatch", "search")
"""Ways to use a pattern; ``search`` stands for all that look at every place of a text."""

ANCHORED = {"match": "match", "fullmatch": "fullmatch"}


@dataclass(frozen=True)
class Used:
    """A pattern, where it is held, and how it is used."""

    where: str
    pattern: re.Pattern[str]
    methods: tuple[str, ...]


def all_patterns() -> list[Used]:
    """Return every pattern of memlab, each once."""
    found: dict[tuple[str, int], Used] = {}
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}
    uses = {path: _uses(tree) for path, tree in trees.items()}
    for info in pkgutil.walk_packages([str(ROOT)], "memlab."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            for pattern in inside(value, module.__name__, set()):
                here = [uses[Path(module.__file__ or "")]] if name.startswith("_") else uses.values()
                ways = {way for some in here for way in some.get(name, ())}
                _add(found, Used(f"{module.__name__}.{name}", pattern,
                                 tuple(ways) if isinstance(value, re.Pattern) else METHODS))
    for path, tree in trees.items():
        for used in _written(path, tree):
            _add(found, used)
    return [*found.values()]


def _add(found: dict[tuple[str, int], Used], used: Used) -> None:
    if isinstance(used.pattern.pattern, str):
        key = used.pattern.pattern, used.pattern.flags
        before = found.get(key)
        methods = tuple(sorted({*used.methods, *(before.methods if before else ())}))
        found[key] = Used(before.where if before else used.where, used.pattern, methods)


def inside(value: Any, module: str, seen: set[int]) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in a value of a module: in containers, and in objects and classes of memlab."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        for part in [*value.keys(), *value.values()]:
            yield from inside(part, module, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from inside(part, module, seen)
    elif str(getattr(type(value), "__module__", "")).startswith("memlab.") and hasattr(value, "__dict__"):
        yield from inside(vars(value), module, seen)
    elif isinstance(value, type) and value.__module__ == module:
        yield from inside(dict(vars(value)), module, seen)


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """Return name -> the ways in which a module uses it as a pattern; one that it hands on is searched."""
    uses: dict[str, set[str]] = {}
    called = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            uses.setdefault(node.id, set()).add(ANCHORED.get(called.get(id(node), ""), "search"))
    return uses


def _written(path: Path, tree: ast.Module) -> Iterator[Used]:
    """Yield the patterns that are written in a call of ``re``."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
                and isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
                and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
                and node.func.attr in ("match", "fullmatch", "search", "sub", "findall", "finditer", "split")):
            flags = re.NOFLAG
            for word in [*node.args[1:], *(k.value for k in node.keywords)]:
                for part in ast.walk(word):
                    if isinstance(part, ast.Attribute) and part.attr in re.RegexFlag.__members__:
                        flags |= re.RegexFlag[part.attr]
            yield Used(f"{path.relative_to(ROOT)}:{node.lineno}", re.compile(node.args[0].value, flags),
                       (ANCHORED.get(node.func.attr, "search"),))


LETTERS = ("a", "A", "0", " ", "\n", "_", "-", ".", ",", ":", "'", '"', "/", "(", "[", "<", "!", "\u3042", "\x00")


def texts_of(pattern: re.Pattern[str], most: int) -> list[tuple[str, str, str]]:
    """Return (before, piece, after): a text is the piece many times between the others, all of a pattern's own parts.

    ``most`` of them are drawn, the same each time.
    """
    pieces = _Pieces(pattern)
    plans = [*pieces.walk(pieces.tree, ())]
    drawn = random.Random(ascii(pattern.pattern)).sample(plans, min(len(plans), most))
    return list(dict.fromkeys(text for plan in drawn if (text := pieces.text(*plan))[1]))


class _Pieces:
    """Texts that parts of a pattern match."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.tree = parser.parse(pattern.pattern, pattern.flags)
        self.letters = tuple(dict.fromkeys([*self._literals(self.tree), *LETTERS]))
        self.groups: dict[int, str] = {}

    def _literals(self, items: Any) -> Iterator[str]:
        for kind, value in items:
            if kind in (op.LITERAL, op.NOT_LITERAL):
                yield chr(value)
            for part in _parts(kind, value):
                yield from self._literals(part)
            if kind is op.IN:
                yield from (chr(v) for k, v in value if k is op.LITERAL)

    def of(self, items: Any, turn: int = 0) -> str:
        """Return a text that a sequence matches, with another choice of branches and letters for each turn."""
        return "".join(self._one(kind, value, turn) for kind, value in items)

    def _one(self, kind: Any, value: Any, turn: int) -> str:
        if kind is op.LITERAL:
            return chr(value)
        if kind is op.NOT_LITERAL:
            return self._letter(lambda c: ord(c) != value, turn)
        if kind is op.ANY:
            return self._letter(lambda c: c != "\n", turn)
        if kind is op.IN:
            return self._letter(lambda c: _holds(value, c), turn)
        if kind is op.BRANCH:
            return self.of(value[1][turn % len(value[1])], turn)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            least, most, body = value
            return self.of(body, turn) * max(least, min(1, most) if turn % 2 == 0 else least)
        if kind is op.SUBPATTERN:
            text = self.of(value[3], turn)
            if value[0] is not None:
                self.groups[value[0]] = text
            return text
        if kind is op.ATOMIC_GROUP:
            return self.of(value, turn)
        if kind is op.GROUPREF:
            return self.groups.get(value, "")
        if kind is op.GROUPREF_EXISTS:
            return self.of(value[1], turn)
        return ""

    def _letter(self, fits: Any, turn: int) -> str:
        some = [c for c in self.letters if fits(c)][:40] or [chr(c) for c in range(256) if fits(chr(c))][:1] or ["x"]
        return some[turn % len(some)]

    def walk(self, items: Any, before: tuple[Any, ...]) -> Iterator[tuple[Any, Any, Any, int, str]]:
        """Yield plans of texts: the items before, those of the piece, those after, the turn, and the end."""
        items = list(items)
        ends = [at for at in range(len(items)) if not (items[at][0] is op.LITERAL and at + 1 < len(items)
                                                       and items[at + 1][0] is op.LITERAL)]
        for turn, at, end in product(range(3), ends, ("nothing", "the rest", "a stop", "a stop, and nothing before")):
            for start in {0, at}:
                yield (*before, *items[:start]), items[start:at + 1], items[at + 1:], turn, end
        for at, (kind, value) in enumerate(items):
            for part in _parts(kind, value):
                if _repeats(part):
                    yield from self.walk(part, (*before, *items[:at]))

    def text(self, before: Any, items: Any, after: Any, turn: int, end: str) -> tuple[str, str, str]:
        """Return the text of a plan."""
        lead = "" if end == "a stop, and nothing before" else self.of(before, turn)
        return lead, self.of(items, turn), {"nothing": "", "the rest": self.of(after, turn)}.get(end, "\x00")


def _repeats(items: Any) -> bool:
    """Return whether a sequence holds anything without a fixed length."""
    return any(kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and value[1] > 1
               or any(map(_repeats, _parts(kind, value))) for kind, value in items)


def _parts(kind: Any, value: Any) -> list[Any]:
    """Return the sequences inside an item of a pattern."""
    if kind is op.BRANCH:
        return list(value[1])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [value[2]]
    if kind is op.SUBPATTERN:
        return [value[3]]
    if kind is op.ATOMIC_GROUP:
        return [value]
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    if kind is op.GROUPREF_EXISTS:
        return [part for part in value[1:] if part]
    return []


_CATEGORIES = {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
               op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W"}


def _holds(parts: Any, letter: str) -> bool:
    """Return whether a set of letters holds one."""
    held = any(kind is op.LITERAL and value == ord(letter)
               or kind is op.RANGE and value[0] <= ord(letter) <= value[1]
               or kind is op.CATEGORY and re.fullmatch(_CATEGORIES[value], letter)
               for kind, value in parts)
    return held != any(kind is op.NEGATE for kind, _ in parts)
