"""Leak guard: it names the stage that reads outside its tables.

While a stage runs, an audit hook sees which file opens a file; polars reads files without such an event, so its
readers are wrapped. What the store, models, imports and libraries do for themselves passes; so do files that a field of
the stage names, and those that the stage has written. The guard catches accidents. It is no sandbox: code that wants to
get around it can.

``install``, which ``tests/conftest.py`` calls, puts the guard around the run of a stage, where it stays for as long as
the process lives.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import polars as pl

from memlab.pipeline import pipeline
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import Tables
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.paths import PACKAGE

OPENS_FILES_FOR = {
    **dict.fromkeys(("memlab.memory", "memlab.models", "memlab.pipeline.pipeline", "memlab.store"), "itself"),
    **dict.fromkeys((__name__, "memlab.support", "memlab.pipeline.slots", "memlab.pipeline.stage",
                     "memlab.pipeline.tables"), "caller")}
"""Modules and packages that open files for a stage: any file for themselves, or one that their caller answers for."""

_FILES = frozenset({"open", "sqlite3.connect"})
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME", "NLTK_DATA")

_judging = threading.local()


@dataclasses.dataclass(eq=False)
class Watch:
    """A running stage: its name, the modules of its class and bases and of its models, and files it may open."""

    name: str
    modules: tuple[str, ...]
    models: frozenset[str]
    files: set[str]
    refused: MemlabError | None = None

    running: ClassVar[dict[int, Watch]] = {}
    """Thread -> the stage that runs in it now, or that has started it and runs still."""

    @classmethod
    def here(cls) -> Watch | None:
        """Return the stage that runs in this thread, or that has started it."""
        return cls.running.get(threading.get_ident())


@functools.cache
def install() -> None:
    """Turn the guard on, for as long as the process lives."""
    run_stage = pipeline._run_stage

    def watched(stage: Stage, tables: Tables, store: Store) -> tuple[Tables, pipeline.StageCost]:
        with watching(stage):
            return run_stage(stage, tables, store)

    pipeline._run_stage = watched
    threading.Thread.start = _watched_start(threading.Thread.start)  # type: ignore[method-assign]
    for name in dir(pl):
        if name.startswith(("read_", "scan_")):
            setattr(pl, name, _without_audit(getattr(pl, name)))
    sys.addaudithook(_audit)


def _watched_start(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    """Wrap the start of a thread: while a stage runs, its threads are watched as the stage is."""

    def started(thread: threading.Thread) -> None:
        watch, run = Watch.here(), thread.run

        def watched_run() -> None:
            if watch in Watch.running.values():
                Watch.running[threading.get_ident()] = watch
            try:
                run()
            finally:
                Watch.running.pop(threading.get_ident(), None)

        if watch is not None:
            thread.run = watched_run  # type: ignore[method-assign]
        start(thread)

    return started


@contextmanager
def watching(stage: object) -> Iterator[None]:
    """Watch a stage while it runs; raise MemlabError if it looks outside its tables."""
    watch, outer, thread = _watch(stage), Watch.here(), threading.get_ident()
    Watch.running[thread] = watch
    try:
        yield
    finally:
        for other in [other for other, stage_watch in Watch.running.copy().items() if stage_watch is watch]:
            Watch.running.pop(other, None)
        if outer is not None:
            Watch.running[thread] = outer
    if watch.refused is not None:  # the stage went on as if nothing had happened
        raise watch.refused


def _watch(stage: object) -> Watch:
    files: set[str] = set()
    models: set[str] = set()
    _parts(stage, files, models)
    cls = type(stage)
    own = {module for module in models if not _is_own(module) and module != cls.__module__}
    bases = tuple(base.__module__ for base in cls.__mro__)
    return Watch(f"{cls.__module__}.{cls.__qualname__}", bases, frozenset(own), files)


def _parts(value: object, files: set[str], models: set[str]) -> None:
    """Gather the paths in the fields of a stage, and the modules of its models, however deep they lie."""
    if isinstance(value, Path) or (isinstance(value, str) and os.sep in value):
        files.add(os.path.realpath(os.path.expanduser(value)))
    elif isinstance(value, dict):
        for part in value.values():
            _parts(part, files, models)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            _parts(part, files, models)
    elif hasattr(value, "identity") or dataclasses.is_dataclass(value):
        if hasattr(value, "identity"):
            models.add(type(value).__module__)
        for part in vars(value).values() if hasattr(value, "__dict__") else ():
            _parts(part, files, models)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not Watch.running or getattr(_judging, "now", False):
        return
    if event in _FILES:
        _judging.now = True
        try:
            _judge_file(arguments[0], _reads(arguments))
        finally:
            _judging.now = False


def _reads(arguments: tuple[Any, ...]) -> bool:
    """Return whether the arguments of ``open`` (path, mode, flags) ask for content that is there already."""
    mode, flags = (*arguments, None, None)[1:3]
    if isinstance(mode, str):
        return "r" in mode or "+" in mode
    return not isinstance(flags, int) or flags & os.O_ACCMODE != os.O_WRONLY


def _without_audit(reader: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a reader of polars: what it opens itself raises no audit event."""

    @functools.wraps(reader)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if Watch.running and not getattr(_judging, "now", False):
            sources = [*args[:1], *(kwargs[name] for name in ("source", "sources") if name in kwargs)]
            _judging.now = True
            try:
                for source in sources:
                    for path in source if isinstance(source, list | tuple) else [source]:
                        _judge_file(path, reads=True)
            finally:
                _judging.now = False
        return reader(*args, **kwargs)

    return guarded


def _judge_file(path: object, reads: bool) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return  # a file that is open already, or bytes in memory
    name = os.path.realpath(os.fsdecode(path))
    watch = Watch.here()
    if not reads:
        if watch is not None:
            watch.files.add(name)
        return
    if not name.startswith(_open_folders()) and not os.path.isdir(name):
        _judge(name, os.fsdecode(path))


def _judge(path: str, shown: str) -> None:
    """Raise if the code that opens a file is a stage's; a library does it for its caller."""
    watch = Watch.here()
    frame = _culprit(watch) if watch else None
    if watch and frame and not any(path == file or path.startswith(file + os.sep) for file in watch.files):
        watch.refused = MemlabError(
            f"the stage {watch.name} opens {shown}, outside its tables",
            where=f"{frame.f_code.co_filename}, line {frame.f_lineno}",
            fix="declare the table in the stage's reads; a file that it needs is named by a field of the stage")
        raise watch.refused


def _culprit(watch: Watch) -> FrameType | None:
    """Return the frame that answers for what happens now; None if that is no stage."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
        own = module.partition(".")[0] == watch.modules[0].partition(".")[0]
        opens_for = _opens_for(module)
        if opens_for == "itself" or module in watch.models:
            return None
        if "importlib" in file:
            return None
        if opens_for != "caller" and (own or _is_own(module) or not _is_library(file)):
            return frame
        frame = frame.f_back
    return None


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE.name


def _opens_for(module: str) -> str:
    """Return for whom a module, or the nearest of its packages, opens files; "" if for nobody."""
    while module and module not in OPENS_FILES_FOR:
        module = module.rpartition(".")[0]
    return OPENS_FILES_FOR.get(module, "")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    names = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    names |= {folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))}
    return tuple(f"{folder}{os.sep}" for name in names for folder in {name, os.path.realpath(name)})


@functools.cache
def _open_folders() -> tuple[str, ...]:
    """Return the folders that hold no one's data: Python, the package, devices, and the libraries' caches of models."""
    names = [*_library_folders(), str(PACKAGE), "/dev", "/proc", "/sys", "/etc",
             sys.prefix, sys.base_prefix, os.path.expanduser("~/.cache/huggingface"),
             os.path.expanduser("~/.cache/torch"), *(os.environ[name] for name in _CACHES if os.environ.get(name))]
    return tuple(os.path.join(os.path.realpath(name), "") for name in names if os.path.realpath(name) != os.sep)


def _is_library(file: str) -> bool:
    return file.startswith(("<", *_library_folders()))
