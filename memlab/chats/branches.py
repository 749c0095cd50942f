"""The branch that a chat ends on, among the branches that edited and repeated messages leave."""

from __future__ import annotations

from collections.abc import Mapping


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the first message to ``leaf``; a circle ends the walk.

    >>> path_to("c", {"a": None, "b": "a", "b2": "a", "c": "b"})
    ['a', 'b', 'c']
    """
    path: list[str] = []
    seen: set[str] = set()
    while leaf is not None and leaf in parents and leaf not in seen:
        seen.add(leaf)
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


def heads(path: list[str], parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return, for each id beside the path, the first id of its branch; None if the branch does not touch the path.

    >>> heads(["a", "c"], {"a": None, "b2": "b", "b": "a", "b3": "b2", "c": "a", "x": None})
    {'b2': 'b', 'b': 'b', 'b3': 'b', 'x': None}
    """
    on_path = set(path)
    found: dict[str, str | None] = {}
    for start in parents:
        walked: list[str] = []
        at: str | None = start
        seen: set[str] = set()
        while at is not None and at in parents and at not in on_path and at not in found and at not in seen:
            seen.add(at)
            walked.append(at)
            at = parents[at]
        head = walked[-1] if walked and at in on_path else found.get(at or "") if at in found else None
        found.update(dict.fromkeys(walked, head))
    return found
