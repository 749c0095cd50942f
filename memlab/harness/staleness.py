"""Staleness of runs: digests of the source that an arm's classes reach, without comments, docstrings and places.

A digest covers the syntax trees of the modules that one module reaches by imports, without docstrings, comments and
positions, and the other files in the folders of their packages, such as lists of words. It is a digest of statements,
not of files: a statement may move to another module. What is imported counts by its own content, and what only types
need does not count. A module or package with ``CHANGES_RESULTS = False`` is left out, with all that only it imports.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

from memlab.runtime.disk_cache import digest_of, load_or_make, own_files, source_files
from memlab.runtime.paths import PACKAGE

CHANGES_RESULTS = False  # what every module with this line says of itself
_MARK = "CHANGES_RESULTS"
_SKIPPED = frozenset({"ctx", "kind", "type_comment"})  # fields that follow from the others, or say nothing


@dataclass
class Module:
    """What a module holds: digests of its statements, of the names that they bind, and its imports."""

    statements: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    imports: list[tuple[str, str, str]] = field(default_factory=list)
    """Module, the name that is taken from it (empty: the module itself), and the name that it gets here."""

    changes_results: bool | None = None
    content: frozenset[str] | None = None
    """Digests of its statements and imports, once they are needed."""

    @classmethod
    def of(cls, text: str) -> Module:
        """Return the module that a text is the source of."""
        made = cls()
        for node in ast.parse(text).body:
            found: list[ast.Import | ast.ImportFrom] = []
            words: list[str] = []
            _write(node, words, found)
            made.imports += [triple for one in found for triple in _triples(one)]
            if words:
                digest = _digest(words)
                made.statements.add(digest)
                made.names |= dict.fromkeys(_bound(node), digest)
            if isinstance(node, ast.Assign) and _MARK in _bound(node):
                made.changes_results = bool(ast.literal_eval(node.value))
        return made

    def targets(self) -> set[str]:
        """Return the modules that it may import: a name that it takes is perhaps a module."""
        return {target for place, taken, _ in self.imports for target in (place, f"{place}.{taken}".rstrip("."))}


class SourceTree:
    """The source of the package memlab in a folder, as it was when it was first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules: dict[str, Module | None] = {}
        self._edges: dict[str, list[str]] = {}
        self._closures: dict[tuple[str, ...], frozenset[str]] = {}
        self._digests: dict[tuple[str, ...], str] = {}

    def digest(self, *modules: str) -> str:
        """Return the digest of these modules and of all that they reach."""
        if modules not in self._digests:
            self._digests[modules] = load_or_make(["source", self._version, *modules],
                                                  lambda: self._digest_of(modules))
        return self._digests[modules]

    def _digest_of(self, modules: tuple[str, ...]) -> str:
        reached = self.closure(*modules)
        packages = {package for name in reached for package in _packages(name)}
        files = {digest for name in packages for digest in self._files.get(name, ())}
        return _digest(sorted(files.union(*map(self._content, reached))))

    def closure(self, *modules: str) -> frozenset[str]:
        """Return the names of these modules of memlab and of all that they import, without those left out."""
        if modules not in self._closures:
            seen: set[str] = set()
            ahead = [name for name in modules if self._counts(name)]
            while ahead:
                name = ahead.pop()
                if name not in seen:
                    seen.add(name)
                    ahead += self._imports(name)
            self._closures[modules] = frozenset(seen)
        return self._closures[modules]

    def _imports(self, name: str) -> list[str]:
        """Return the modules that a module imports, without those left out."""
        if name not in self._edges:
            module = self._module(name) or Module()
            self._edges[name] = [target for target in module.targets() if self._counts(target)]
        return self._edges[name]

    def _content(self, name: str) -> frozenset[str]:
        """Return the digests of a module's statements and imports."""
        module = self._module(name) or Module()
        if module.content is None:
            imported = {_digest([taken, alias, self._origin(place, taken)]) for place, taken, alias in module.imports}
            module.content = frozenset(module.statements | imported)
        return module.content

    def _origin(self, place: str, name: str) -> str:
        """Return the digest of what a name stands for that is imported; of a library, the name of its module."""
        module = self._module(place)
        if module is None or not self._counts(place):
            return "" if module else place
        again = (self._origin(origin, taken) for origin, taken, alias in module.imports if alias == name != "")
        return module.names.get(name) or next(again, "")

    def _counts(self, name: str) -> bool:
        """Return whether a name is a module of memlab that counts, as the nearest declaration says, if there is one."""
        if self._module(name) is None:
            return False
        marks = (module.changes_results for part in [name, *_packages(name)] if (module := self._module(part)))
        return next((mark for mark in marks if mark is not None), True)

    def _module(self, name: str) -> Module | None:
        """Return a module of memlab, None for other names."""
        if name not in self._modules:
            package, *inner = name.split(".")
            path = "/".join(inner)
            texts = (self._source.get(file) for file in (f"{path}/__init__.py".lstrip("/"), f"{path}.py"))
            text = next((text for text in texts if text is not None), None)
            self._modules[name] = None if text is None or package != PACKAGE.name else Module.of(text)
        return self._modules[name]

    @cached_property
    def _source(self) -> dict[str, str]:
        return own_files() if self.folder == PACKAGE else source_files(self.folder)

    @cached_property
    def _version(self) -> str:
        return digest_of(self._source)

    @cached_property
    def _files(self) -> dict[str, set[str]]:
        """Package below memlab -> digests of the names and contents of its files that are no Python."""
        files: dict[str, set[str]] = {}
        for path, digest in ((PurePosixPath(path), digest) for path, digest in self._source.items()):
            home = next(folder for folder in path.parents if str(folder / "__init__.py") in self._source)
            if path.suffix not in ("", ".py") and home.parts:  # a wheel has conf at the root
                files.setdefault(".".join([PACKAGE.name, *home.parts]), set()).add(_digest([path.name, digest]))
        return files


@cache
def own_source() -> SourceTree:
    """Return the source that this process runs, as it was when it was first needed."""
    return SourceTree(PACKAGE)


def imports_of(folder: Path) -> set[str]:
    """Return the modules that a Python file, or those of a folder, import; a file that is no Python imports none."""
    targets: set[str] = set()
    for file in [folder] if folder.is_file() else folder.rglob("*.py"):
        with suppress(SyntaxError, ValueError):
            targets |= Module.of(file.read_text(encoding="utf-8")).targets()
    return targets


def _write(node: ast.AST, words: list[str], imports: list[ast.Import | ast.ImportFrom]) -> None:
    """Append an unambiguous serialisation of a syntax tree, and its imports."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        imports.append(node)
    elif not _says_nothing(node):
        words.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name not in _SKIPPED:
                words.append(name)
                for item in value if isinstance(value, list) else (value,):
                    if isinstance(item, ast.AST):
                        _write(item, words, imports)
                    else:
                        words.append(repr(item))
        words.append(")")


def _says_nothing(node: ast.AST) -> bool:
    """Return whether a node is a docstring, or what only types need."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _triples(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield alias.name, "", alias.asname or alias.name.rpartition(".")[2]
        elif node.module:
            yield node.module, alias.name, alias.asname or alias.name


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _packages(name: str) -> list[str]:
    """Return the packages around a module, the nearest first; a package is itself one of them."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _digest(words: Iterable[str]) -> str:
    return hashlib.blake2b("\0".join(words).encode(errors="surrogatepass"), digest_size=16).hexdigest()
