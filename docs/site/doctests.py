"""Examples in docstrings as code: fences around the lines of a doctest, which Markdown would join to a paragraph."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


def fenced(text: str) -> str:
    """Return a docstring with fences around its examples.

    >>> print(fenced("Add.\\n\\n>>> 1 + 1\\n2"))
    Add.
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
    return "\n".join(lines[:-1])


class Doctests(Extension):
    """Fences the examples of every docstring that is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring in place."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
