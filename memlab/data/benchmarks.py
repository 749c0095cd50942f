"""The official benchmark files and LongMemEval's evaluation script: names, sources, sizes and checksums."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from memlab.errors import MemlabError, did_you_mean

HUB = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main"
JUDGE = "https://raw.githubusercontent.com/xiaowu0162/LongMemEval/main/src/evaluation"
LOCOMO = "https://raw.githubusercontent.com/snap-research/locomo/main/data"


@dataclass(frozen=True)
class OfficialFile:
    """One file of a benchmark; size (bytes) and sha256 are None where nobody has published them."""

    name: str
    file: str
    base: str
    size: int | None
    sha256: str | None
    licence: str


FILES = {
    f.name: f
    for f in (
        OfficialFile("locomo", "locomo10.json", LOCOMO, 2_805_274,
                     "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4", "CC BY-NC 4.0"),
        OfficialFile("longmemeval_oracle", "longmemeval_oracle.json", HUB, 15_388_478,
                     "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c", "MIT"),
        OfficialFile("longmemeval_s", "longmemeval_s_cleaned.json", HUB, 277_383_467,
                     "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442", "MIT"),
        OfficialFile("longmemeval_judge", "evaluate_qa.py", JUDGE, 7_436,
                     "ecce9c4c79dc89d99534ac17b383a5cbb5b9f0c69ee98adaf0684742e3d95251", "MIT"),
        OfficialFile("longmemeval_m", "longmemeval_m_cleaned.json", HUB, None, None, "MIT"),
    )
}


def official(name: str) -> OfficialFile:
    """Return the file of a benchmark; raise MemlabError with the nearest name for an unknown one."""
    if name not in FILES:
        raise MemlabError(f"there is no benchmark file '{name}'", fix=did_you_mean(name, FILES))
    return FILES[name]


def data_folder() -> Path:
    """Return the folder of benchmark files: ``$MEMLAB_HOME/data``; MEMLAB_HOME defaults to ``~/.cache/memlab``."""
    return Path(os.environ.get("MEMLAB_HOME") or Path.home() / ".cache" / "memlab") / "data"


def find(name: str, path: Path | None, setting: str = "data.path") -> Path:
    """Return the file to read: ``path``, else the official file in the data folder (.gz or .xz too).

    Raises MemlabError with the way to get the file if there is none; ``setting`` names the setting of ``path``.
    """
    entry = official(name)
    home = data_folder() / entry.file
    if path is None:
        candidates = [home.with_name(home.name + suffix) for suffix in ("", ".gz", ".xz")]
        path = next((p for p in candidates if p.exists()), home)
    if path.is_file():
        return path
    problem = "a folder, expected a file" if path.is_dir() else "no such file"
    raise MemlabError(problem, where=str(path), fix=f"run `python -m memlab.data fetch {name}`, or put {entry.file} "
                      f"from {entry.base} at {home}, or point {setting} at your copy")
