"""Pages that lie outside docs: mkdocs is handed the README, the experiments and the cluster's pages from their places.

The site's colours are those of the report and the questions page.

Links are written for the repository. Here they are turned into links between the site's pages, so that both work.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "slurm/*.md", "experiments/**/*.md", "experiments/**/*.png",
           "experiments/**/*.svg")
DESIGN, SITE = ROOT / "memlab" / "report" / "templates" / "design.css", Path(__file__).with_name("site.css")
LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\]\()([^)\s]+)(\))")
log = logging.getLogger("mkdocs.memlab")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs, of which the README becomes the first page, and the colours of memlab's pages."""
    colours = re.search(r"^:root \{.*?^\}", DESIGN.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert colours is not None, f"{DESIGN} has no colours"
    css = f"{colours[0]}\n{SITE.read_text(encoding='utf-8')}"
    files.append(File.generated(config, "design.css", content=css))
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            place = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, "index.md" if place == "README.md" else place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Return the page with every link to a file of the repository as a link to its page of the site.

    Folders lead to their README. A link to a file without a page is a warning, hence an error with ``--strict``.
    """
    source = Path(str(page.file.abs_src_path)).resolve()
    places = {Path(str(file.abs_src_path)).resolve(): file.src_uri for file in files if file.abs_src_path}

    def target(link: str) -> str:
        path, hash_, anchor = link.partition("#")
        if "://" in link or not path:
            return link
        goal = (source.parent / path).resolve()
        goal = goal / "README.md" if goal.is_dir() else goal
        if goal not in places:
            log.warning("%s: no page of the site for the link %s", page.file.src_uri, link)
            return link
        return os.path.relpath(places[goal], os.path.dirname(page.file.src_uri) or ".") + hash_ + anchor

    return LINK.sub(lambda match: match[1] + target(match[2]) + match[3], markdown)
