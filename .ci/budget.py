"""Size and structure of memlab in figures, and the caps on them in ``.ci/budget.yaml``.

``python .ci/budget.py [CHECKOUT ...]`` prints a column for each checkout. ``python .ci/budget.py --check`` prints each
figure above its cap, and each cap above the lowest of its history, and fails if there is one. ``--seconds N`` adds the
processor seconds of the tests.

Lines of code are lines that hold more than a comment or a docstring. Tests are files of ``tests``, and ``test_*.py``
elsewhere. A cycle is a set of packages below memlab that import each other, over any number of steps, when they are
loaded. Globals are names of a module that its functions bind anew, or collections of a module that its functions
change; functions with a cache are not counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CAPS = ".ci/budget.yaml"
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
          tokenize.ENDMARKER}
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem", "remove",
           "setdefault", "update"}


def docstrings(tree: ast.Module) -> set[int]:
    """Return the lines of all docstrings, and of the strings that stand below a name to explain it."""
    return {line for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str) for line in range(node.lineno, (node.end_lineno or 0) + 1)}


def code_lines(text: str) -> int:
    """Return the number of lines of code of a module."""
    lines = {line for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in SILENT
             for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - docstrings(ast.parse(text)))


def imports_at_load(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when a module is loaded: not in functions, and not for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from imports_at_load(ast.Module(body=child.orelse, type_ignores=[]))
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports_at_load(child)


def package_edges(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return package -> the other packages that its modules import when they are loaded."""
    edges: dict[str, set[str]] = {package(name): set() for name in trees}
    for name, tree in trees.items():
        for node in imports_at_load(tree):
            for alias in node.names:
                base = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                target = f"{base}.{alias.name}" if f"{base}.{alias.name}" in trees else base
                if target.startswith("memlab."):
                    edges[package(name)] |= {package(target)} - {package(name)}
    return edges


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of packages that reach each other over any number of imports (strongly connected)."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        ahead, seen = [*edges[start]], set[str]()
        while ahead:
            if (name := ahead.pop()) not in seen:
                seen.add(name)
                ahead += edges.get(name, ())
        reached[start] = seen
    rings = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in edges if a in reached[a]}
    return [set(ring) for ring in rings]


WINGS = {"stages", "experiment"}
"""Packages below memlab whose own packages each count as one."""

APART = {"pipeline.pipeline", "data.questions", "evaluate.score", "evaluate.peers"}
"""What stands above the package that holds it: it wires the stages, or uses them."""


def package(module: str) -> str:
    """Return the package below memlab that holds a module, or the module's own name at the root.

    >>> package("memlab.stages.rank.score"), package("memlab.models.local.base"), package("memlab.run")
    ('stages.rank', 'models', 'run')
    """
    first, second = [*module.split("."), "", ""][1:3]
    return f"{first}.{second}" if second and (first in WINGS or f"{first}.{second}" in APART) else first


def mutable_globals(tree: ast.Module) -> set[str]:
    """Return the names of a module that its functions bind anew or change."""
    own = {name.id for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)
           for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
           for name in ast.walk(target) if isinstance(name, ast.Name)}
    changed: set[str] = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        local = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                changed |= {*node.names}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                changed |= {node.func.value.id} - local if isinstance(node.func.value, ast.Name) else set()
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                changed |= {node.value.id} - local if isinstance(node.value, ast.Name) else set()
    return own & changed


def figures(root: Path) -> dict[str, int]:
    """Return what is counted -> its figure, for one checkout."""
    files = sorted((root / "memlab").rglob("*.py"))
    texts = {".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"):
             file.read_text(encoding="utf-8") for file in files}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    beside = sorted((root / "experiments").rglob("*.py"))
    tests = [*(root / "tests").rglob("*.py"), *(file for file in beside if file.name.startswith("test_"))]
    size = sum(map(code_lines, texts.values()))
    return {
        "lines of code in memlab": size,
        "lines of code in memlab and experiments": size + _lines(file for file in beside if file not in tests),
        "lines of code of tests": _lines(tests),
        "entries of memlab": len([*(root / "memlab").glob("*.py"), *(root / "memlab").glob("*/__init__.py")]),
        "files in memlab": len(files),
        "yaml files in conf": len([*(root / "conf").rglob("*.yaml")]),
        "packages in the largest cycle of imports": max(map(len, cycles(package_edges(trees))), default=1),
        "mutable globals": sum(len(mutable_globals(tree)) for tree in trees.values())}


def _lines(files: Iterable[Path]) -> int:
    return sum(code_lines(file.read_text(encoding="utf-8")) for file in files)


def excesses(counted: Mapping[str, float], root: Path) -> Iterator[str]:
    """Yield each figure above its cap, and each cap or raise above the lowest that its history has.

    A cap may be above that by what ``raises`` lists for it: work that is planned and not yet done.
    """
    import yaml  # noqa: PLC0415  (the table alone needs no package)

    now = yaml.safe_load((root / CAPS).read_text(encoding="utf-8"))
    for what, cap in now["caps"].items():
        if counted.get(what, 0) > cap:
            yield f"{what}: {counted[what]:,.0f}, the cap is {cap:,}"
    for commit in _git(root, "log", "--format=%H", "--", CAPS).split():
        then = yaml.safe_load(_git(root, "show", f"{commit}:{CAPS}"))
        for part, room, missing in (("caps", now["raises"], inf), ("raises", {}, 0)):
            for what, figure in then[part].items():
                most = figure + room.get(what, 0)
                if now[part].get(what, missing) > most:
                    yield f"{CAPS}, {part}: {what}: the most that commit {commit[:8]} allows is {most:,}"


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def main(*words: str) -> int:
    """Print the table, or what is above the caps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args(words)
    if given.check:
        seconds = {} if given.seconds is None else {"processor seconds of the tests": given.seconds}
        wrong = [*excesses({**figures(ROOT), **seconds}, ROOT)]
        print("\n".join(wrong) or "within the caps")
        return int(bool(wrong))
    columns = [figures(root) for root in given.checkouts or (ROOT,)]
    print("| |", " | ".join(root.resolve().name for root in given.checkouts or (ROOT,)), "|")
    print("|---|" + "--:|" * len(columns))
    for what in columns[0]:
        print(f"| {what} |", " | ".join(f"{column[what]:,}" for column in columns), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
