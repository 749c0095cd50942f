"""Prose and layout of the repository: links, lengths of pages, names of files and tests, docstrings of modules.

``python .ci/lint.py`` prints what is wrong, one line each, and ends with status 1 if anything is. It needs no
installed memlab. Behaviour is tested in ``tests``; style of Python is ruff's.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "memlab"
README = ROOT / "README.md"
FOLDERS = ("*.md", "docs/*.md", "docs/cookbook/*.md", "slurm/*.md", "experiments/**/*.md")
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e "
COMMANDS = [f"{INSTALL}'.[cpu]' && .venv/bin/python -m memlab.run +exp=adaptive_k",
            f"{INSTALL}'.[cpu,test]' && .venv/bin/python -m pytest"]
"""The two commands of the README, which CI and users run."""

APART = ("browser", "cluster", "faults", "fuzz")
"""Folders of tests of a whole browser, cluster or family of readers, or of faults in everything."""

WHOLE = ("test_conf", "test_conformance", "test_cookbook", "test_faults", "test_foreign", "test_leak_guard",
         "test_leaks", "test_offered_commands", "test_rows", "test_structure", "test_systems", "test_wheel",
         "test_write_ups")
"""Tests of the package as a whole, or of a folder of configuration files or pages."""

MODULE_COMMAND = re.compile(r"(?<!\.venv/bin/)python3? -m memlab\.(?!experiment\.cluster\.worker|run` is `memlab run`)"
                            r"[a-z]+")
"""A command by its module: it is ``memlab COMMAND`` everywhere but in the README's first command."""

INNER_IMPORT = re.compile(r" *(from|import) memlab\.")
"""An import that a move inside memlab would break."""

QUESTION_WORDS = ("What", "How", "Which", "Where", "Who", "Whether")


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text_of(path))


def inside(path: Path) -> str:
    """Return a path as seen from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def links() -> Iterator[str]:
    """Yield links of pages that lead to no file or to no heading."""
    for page in sorted({path for pattern in FOLDERS for path in ROOT.glob(pattern)}):
        for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            goal = (page.parent / path).resolve() if path else page
            if not goal.exists() or (anchor and anchor not in anchors(goal)):
                yield f"{inside(page)}: the link {target} leads nowhere"


def pages() -> Iterator[str]:
    """Yield pages that are too long, and pages that the README or the site does not lead to."""
    listed = text_of(README) + "".join(text_of(ROOT / "docs" / f"{name}.md") for name in ("findings", "not_run"))
    site = text_of(ROOT / "docs" / "site" / "mkdocs.yml")
    limits = {README: 110} | dict.fromkeys((ROOT / "docs" / "cookbook").glob("*.md"), 100)
    for page, most in limits.items():
        if len(text_of(page).splitlines()) > most:
            yield f"{inside(page)}: more than {most} lines"
    for page in sorted((ROOT / "docs").glob("*.md")):
        if f"(docs/{page.name}" not in text_of(README):
            yield f"{inside(page)}: README.md has no link to it"
    for page in sorted((ROOT / "experiments").glob("*/README.md")):
        if f"experiments/{page.parent.name})" not in listed:
            yield f"{inside(page)}: no link in README.md, docs/findings.md or docs/not_run.md"
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if f" {page.relative_to(ROOT / 'docs').as_posix()}\n" not in site:
            yield f"{inside(page)}: docs/site/mkdocs.yml does not list it"


def commands() -> Iterator[str]:
    """Yield what differs between the README's two commands, the extras, and what CI installs."""
    if re.findall(r"^python3 -m venv .*$", text_of(README), re.MULTILINE) != COMMANDS:
        yield "README.md: its two commands are not those that CI and users run"
    extras = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    if not {"cpu", "test"} <= set(extras):
        yield "pyproject.toml: the extras cpu and test are not both there"
    if "-c constraints.txt -e '.[cpu,test]'" not in text_of(ROOT / ".ci" / "run"):
        yield ".ci/run: it does not install what the README's test command installs"


def spelling() -> Iterator[str]:
    """Yield lines that print a command as a module, and lines of pages that import an inner module of memlab."""
    texts = (*ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.*"), *ROOT.glob("slurm/*"), README,
             *ROOT.glob("conf/**/*.yaml"), *PACKAGE.rglob("*.py"))
    for file in sorted(one for one in texts if one.suffix in (".md", ".py", ".sbatch", ".sh", ".yaml")):
        for number, line in enumerate(text_of(file).splitlines(), 1):
            if MODULE_COMMAND.search(line):
                yield f"{inside(file)}:{number}: write memlab COMMAND, not python -m memlab.COMMAND"
            if file.suffix == ".md" and INNER_IMPORT.match(line):
                yield f"{inside(file)}:{number}: pages import from memlab alone (memlab/__init__.py)"


def docstrings() -> Iterator[str]:
    """Yield modules that do not say what they are, or begin with a question word."""
    for file in sorted(PACKAGE.rglob("*.py")):
        said = ast.get_docstring(tree_of(file)) or ""
        if not said and file.name != "__init__.py":
            yield f"{inside(file)}: no docstring"
        if said and said.split(maxsplit=1)[0].strip(":,") in QUESTION_WORDS:
            yield f"{inside(file)}: its docstring begins with a question word"


def root() -> Iterator[str]:
    """Yield that the root of the package is too full, if it is."""
    if len(entries := [path for path in PACKAGE.iterdir() if not path.name.startswith("__pyc")]) > 16:
        yield f"memlab: {len(entries)} entries, more than sixteen"


def names_of_tests() -> Iterator[str]:
    """Yield test files that are not named after a module or folder, with a further word or two."""
    tests = ROOT / "tests"
    for file in sorted(tests.rglob("test_*.py")):
        place = file.relative_to(tests).parent
        words = file.stem.removeprefix("test_").split("_")
        stems = {"_".join(words[:n]) for n in range(1, len(words) + 1)} | {"__main__"} & {f"__{words[-1]}__"}
        mirrored = (ROOT if place.parts[:1] == ("experiments",) else PACKAGE) / place
        here = {path.stem for path in mirrored.iterdir()} if mirrored.is_dir() else set()
        if not (stems & here or file.stem in WHOLE or {*place.parts} & {*APART}):
            yield f"{inside(file)}: there is no module or folder of this name in {inside(mirrored)}"


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    wrong = [line for check in (links, pages, commands, spelling, docstrings, root, names_of_tests) for line in check()]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
