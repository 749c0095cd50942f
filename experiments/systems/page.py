"""Write the published figures (memlab/systems/published.yaml) into docs/systems.md, between its two marks."""

from __future__ import annotations

from pathlib import Path

from memlab.report.markdown import plain
from memlab.report.published import document_tables

PAGE = Path(__file__).parents[2] / "docs/systems.md"
START, END = "<!-- made from memlab/systems/published.yaml by experiments/systems/page.py -->", "<!-- end -->"


def page(text: str) -> str:
    """Return the page with the tables of the file between its marks."""
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n" + "\n\n".join(map(plain, document_tables())) + f"\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
