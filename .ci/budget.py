"""Size and structure of memlab in figures: ``python .ci/budget.py [CHECKOUT ...]`` prints a column for each checkout.

Lines of code are lines that hold more than a comment or a docstring. A cycle is a set of packages below memlab that
import each other, over any number of steps, when they are loaded. Globals are names of a module that its functions bind
anew, or collections of a module that its functions change; functions with a cache are not counted.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

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


def package(module: str) -> str:
    """Return the folder below memlab that holds a module, or the module's own name at the root."""
    return [*module.split("."), ""][1]


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


def figures(root: Path) -> dict[str, str]:
    """Return what is counted -> its figure, for one checkout."""
    files = sorted((root / "memlab").rglob("*.py"))
    texts = {".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"):
             file.read_text(encoding="utf-8") for file in files}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    tests = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (root / "tests").rglob("*.py"))
    return {
        "lines of code in memlab": f"{sum(map(code_lines, texts.values())):,}",
        "all lines in memlab": f"{sum(len(text.splitlines()) for text in texts.values()):,}",
        "files in memlab": f"{len(files):,}",
        "lines of tests": f"{tests:,}",
        "yaml files in conf": f"{len([*(root / 'conf').rglob('*.yaml')]):,}",
        "packages in the largest cycle of imports": str(max(map(len, cycles(package_edges(trees))), default=1)),
        "mutable globals": str(sum(len(mutable_globals(tree)) for tree in trees.values()))}


def main(*roots: str) -> None:
    """Print the table."""
    columns = [figures(Path(root)) for root in roots or (str(Path(__file__).resolve().parents[1]),)]
    print("| |", " | ".join(Path(root).resolve().name for root in roots or ("now",)), "|")
    print("|---|" + "--:|" * len(columns))
    for what in columns[0]:
        print(f"| {what} |", " | ".join(column[what] for column in columns), "|")


if __name__ == "__main__":
    main(*sys.argv[1:])
