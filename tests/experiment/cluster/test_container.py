"""``slurm/memlab.def``, read by Apptainer's rules: nothing builds it here, so what it copies and uses is checked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
DEFINITION = (ROOT / "slurm" / "memlab.def").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def section(name: str) -> list[str]:
    """Return the lines of a section without comments and blank lines."""
    found = re.search(rf"^%{name}\b[^\n]*\n(.*?)(?=^%|\Z)", DEFINITION, re.MULTILINE | re.DOTALL)
    assert found, name
    return [line.split("#")[0].strip() for line in found[1].splitlines() if line.split("#")[0].strip()]


def copies() -> dict[str, str]:
    """Return destination -> source as Apptainer's parser reads them: two words per line, further words are ignored."""
    pairs = {}
    for line in section("files"):
        words = re.findall(r"""[^\s"']+|"[^"]*"|'[^']*'""", line)
        pairs[words[1] if len(words) > 1 else f"/{words[0]}"] = words[0]
    return pairs


def test_every_line_of_files_is_a_source_and_a_destination() -> None:
    for line in section("files"):
        assert len(line.split()) == 2, line
    for destination, source in copies().items():
        assert (ROOT / source).exists(), source
        assert destination.startswith("/")


def test_what_post_uses_is_in_the_container() -> None:
    post, there = " ".join(section("post")), copies()
    used = re.findall(r"-c\s+(\S+)", post)
    (project, extras), = re.findall(r"-e\s+'?([^'\s\[]+)\[([^\]]+)\]", post)
    needed = [*used, *(f"{project}/{name}" for name in ("pyproject.toml", PROJECT["readme"], "memlab", "conf"))]
    assert used
    for path in needed:
        assert there[path] == Path(path).name
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
