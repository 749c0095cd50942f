"""Settings with their reasons: a configuration as YAML, with the comments beside the defaults in the classes."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import yaml

from memlab.config.defaults import find_class


@cache
def reasons(cls: type) -> dict[str, str]:
    """Return setting -> the comment beside or above its default, in the class or in one that it inherits from.

    >>> from memlab.rank.select import Fixed
    >>> reasons(Fixed)
    {'k': 'K of most published systems'}
    """
    bases = [base for base in reversed(cls.__mro__) if is_dataclass(base)]
    return {name: text for base in bases for name, text in _own_reasons(base).items()}


def _own_reasons(cls: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # a plug-in without source
        return {}
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    alone = {number for number, line in enumerate(source.splitlines(), 1) if line.lstrip().startswith("#")}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for field in definition.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            first = field.lineno
            while first - 1 in alone:
                first -= 1
            places = [*range(first, field.lineno), *range(field.lineno, (field.end_lineno or field.lineno) + 1)]
            texts[field.target.id] = " ".join(comments[place] for place in places if place in comments)
    return {name: text for name, text in texts.items() if text and not text.startswith("noqa")}


def lines_with_reasons(node: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a configuration as YAML, each setting with its reason.

    >>> print("\\n".join(lines_with_reasons({"select": {"_target_": "memlab.rank.select.Fixed", "k": 10}})))
    select:
      _target_: memlab.rank.select.Fixed
      k: 10  # K of most published systems
    """
    cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
    texts = reasons(cls) if cls else {}
    pad = "  " * depth
    for key, value in node.items():
        note = f"  # {texts[key]}" if key in texts else ""
        if isinstance(value, Mapping) and value:
            yield f"{pad}{key}:{note}"
            yield from lines_with_reasons(value, depth + 1)
        else:
            plain = yaml.safe_dump({key: value}, width=10_000, allow_unicode=True, default_flow_style=False)
            first, *rest = plain.rstrip("\n").split("\n")
            yield f"{pad}{first}{note}"
            yield from (f"{pad}{line}" for line in rest)
