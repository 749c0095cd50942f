"""Docstrings as the site shows them: examples as code, and a class's settings, with their comments, as a table."""

from __future__ import annotations

import re
import tokenize
from functools import cache
from pathlib import Path
from typing import Any

from griffe import Attribute, Class, Extension, Object

ANNOTATED = re.compile(r"Annotated\[(.+?), (?:Field\(.*?\)|\w+)\]")
SECTION = re.compile(r"^(Args|Attributes):$", re.MULTILINE)


def fenced(text: str) -> str:
    """Return a docstring with fences around its examples, and one colon before indented code.

    >>> print(fenced("Add::\\n\\n    1 + 1\\n\\n>>> 1 + 1\\n2"))
    Add:
    <BLANKLINE>
        1 + 1
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    lines: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if not inside and line.startswith(">>>"):
            lines, inside = [*lines, "```pycon"], True
        elif inside and not line.strip():
            lines, inside = [*lines, "```"], False
        lines.append(line)
    return re.sub(r"^(.*):(:\n\n {4})", lambda found: (found[1] and found[1] + ":") + found[2][1:],
                  "\n".join(lines[:-1]), flags=re.MULTILINE)


@cache
def comments(file: Path) -> dict[int, tuple[bool, str]]:
    """Return line -> whether a comment stands there alone, and its text."""
    with tokenize.open(file) as source:
        return {token.start[0]: (not token.line[:token.start[1]].strip(), token.string.lstrip("# "))
                for token in tokenize.generate_tokens(source.readline)
                if token.type == tokenize.COMMENT and not token.string.startswith("# noqa")}


def described(field: Attribute, of: dict[int, tuple[bool, str]]) -> str:
    """Return a field as a line of a docstring: its name, type, comment above or beside it, and default."""
    first = field.lineno or 1
    above = first
    while of.get(above - 1, (False, ""))[0]:
        above -= 1
    text = " ".join(of[line][1] for line in range(above, (field.endlineno or first) + 1) if line in of)
    kind = ANNOTATED.sub(r"\1", str(field.annotation))
    value = "" if field.value is None or "Field(" in str(field.value) else f"Default: `{field.value}`."
    return f"{field.name} ({kind}): {text.rstrip('.')}{'. ' * bool(text and value)}{value}"


class Docstrings(Extension):
    """Changes each docstring that is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Fence the examples."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Add the settings of a class whose constructor is made from its fields."""
        fields = [one for one in cls.attributes.values() if "instance-attribute" in one.labels and not one.has_docstring
                  and not one.name.startswith("_") and not str(one.annotation).startswith(("None", "ClassVar"))]
        if not fields or not cls.docstring or "__init__" in cls.members:
            return
        said = cls.docstring.value
        if SECTION.search(said):
            cls.docstring.value = SECTION.sub("Attributes:", said)
        elif isinstance(cls.filepath, Path):
            lines = [f"    {described(one, comments(cls.filepath))}" for one in fields]
            cls.docstring.value = "\n".join([said, "", "Attributes:", *lines])
