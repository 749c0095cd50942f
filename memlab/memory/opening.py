"""Opening of a memory's folder: content is loaded on first use, changes are exclusive, questions run concurrently."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path

from memlab.memory.content import Content
from memlab.memory.database import Database
from memlab.pipeline.pipeline import Pipeline
from memlab.support.errors import MemlabError
from memlab.support.files import SharedLock


class LockedContent:
    """The content of one folder, which threads take in turns.

    Args:
        folder: Folder of the memory, made on first use.
        pipeline: Stages that write.
        zone: Time zone of the days, as ``Clock`` takes it.
    """

    def __init__(self, folder: Path, pipeline: Pipeline, zone: tzinfo | None) -> None:
        self._folder, self._pipeline, self._zone = folder, pipeline, zone
        self._database = Database(folder)
        self._lock = SharedLock()
        self._content: Content | None = None

    @contextmanager
    def alone(self, prepared: bool = False) -> Iterator[Content]:
        """Yield the content to one thread that may change it; ``prepared`` puts its sessions in the order of time."""
        with self._lock.alone():
            content = self._load()
            if prepared:
                content.prepare()
            yield content

    @contextmanager
    def side_by_side(self) -> Iterator[Content]:
        """Yield the content, with its sessions in the order of time, to one of many threads that put questions."""
        with self._lock.shared(self._is_prepared, self._prepare):
            yield self._load()

    def backup(self, folder: Path) -> None:
        """Copy the content to a new or empty folder, while questions are answered."""
        with self._lock.shared(self._is_prepared, self._prepare):
            self._database.backup(folder)

    def is_open(self) -> bool:
        """Return whether this process has loaded the content."""
        return self._content is not None and self._content.is_open()

    def close(self) -> None:
        """Release the folder for other processes; the next use loads the content again."""
        with self._lock.alone():
            if self._content is not None:
                self._content.close()
                self._content = None

    def _is_prepared(self) -> bool:
        return self._content is not None and self._content.is_prepared()

    def _prepare(self) -> None:
        self._load().prepare()

    def _load(self) -> Content:
        content = self._content
        if content is None or content.process is None:
            content = self._content = Content(self._database, self._pipeline, self._zone)
        if not content.is_open():
            raise MemlabError("this memory was loaded by the process that this one was forked from",
                              where=str(self._folder), fix="make the Memory in the process that uses it")
        return content
