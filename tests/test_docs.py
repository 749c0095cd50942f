"""The front page and the pages in docs: their length, their links, and the commands that CI and users depend on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = ("*.md", "docs/*.md", "docs/cookbook/*.md", "slurm/*.md", "experiments/**/*.md")
PAGES = sorted(path for pattern in FOLDERS for path in ROOT.glob(pattern))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(goal), f"{page.name}: {target}"


def test_the_front_page_is_short_and_leads_to_every_page_of_docs() -> None:
    assert len(README.splitlines()) <= 130
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name}" in README, page.name


def test_every_experiment_is_on_the_front_page_or_among_those_not_run() -> None:
    listed = README + (ROOT / "docs" / "not_run.md").read_text(encoding="utf-8")
    for page in (ROOT / "experiments").glob("*/README.md"):
        assert f"experiments/{page.parent.name})" in listed, page.parent.name


def test_the_two_commands_are_those_that_ci_and_users_run() -> None:
    first, second = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    install = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e "
    assert first == f"{install}'.[cpu]' && .venv/bin/python -m memlab.run +exp=adaptive_k"
    assert second == f"{install}'.[cpu,test]' && .venv/bin/python -m pytest"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"cpu", "test"} <= set(extras)
    assert "install -q -c constraints.txt -e '.[cpu,test]'" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_page_of_docs_has_its_place_on_the_site() -> None:
    site = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f" {page.relative_to(ROOT / 'docs').as_posix()}\n" in site, page
