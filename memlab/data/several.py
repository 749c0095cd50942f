"""A benchmark of several files in one folder: which they are, its name and identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from memlab.data import readers
from memlab.data.benchmarks import data_folder, official
from memlab.data.chats.refusal import instead
from memlab.data.subset import Subset
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.errors import MemlabError, natural_order


@stage
class SeveralFiles(Subset):
    """A folder of files of which each has questions that depend on one another, most often one corpus.

    A subclass says its ``benchmark`` and the ``pattern`` of its files. A packed file (.gz, .xz) is read where there is
    no other.
    """

    pattern: ClassVar[str]

    path: LocalPath | None = None  # the folder of the files; null = its place below $MEMLAB_HOME/data

    def __post_init__(self) -> None:
        self._files()

    def identity(self) -> dict[str, Any]:
        """Return the checksums of the files and the options."""
        files = {path.name: readers.sha256(path) for path in self._files()}
        return {"benchmark": self.benchmark, "files": files, **self.options()}

    def _files(self) -> list[Path]:
        """Return the files in the order of their names, as people count."""
        place = self.path or data_folder() / self.benchmark
        if place.is_file():
            return [place]
        files: dict[str, Path] = {}
        for path in (file for suffix in ("", ".gz", ".xz") for file in place.glob(self.pattern + suffix)):
            files.setdefault(path.name.partition(".")[0], path)
        if not files:
            fix = (f"run `memlab data fetch {self.benchmark}`, or point data.path at your copy of the files of "
                   f"{official(self.benchmark).base}")
            raise instead(self.path, MemlabError(f"no {self.pattern} is there", where=str(place), fix=fix))
        return sorted(files.values(), key=lambda path: natural_order(path.name))
