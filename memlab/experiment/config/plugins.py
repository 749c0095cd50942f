"""Plug-ins: code outside memlab whose classes a command line may use, by ``plugins=[NAME]``.

A name is a module, or an entry point that an installed package declares in the group ``memlab.techniques``; in a
checkout of memlab the packages in its folder ``experiments`` are found too. Nothing is imported unless it is named.
``_target_`` may then name classes of the top-level package of that module. A folder ``conf`` in the package holds its
configuration files (``memlab.experiment.config.choices``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from memlab.pipeline.stage import classes_of
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.paths import shipped_path
from memlab.support.text.display import safe_line

GROUP = "memlab.techniques"
"""Group of the entry points by which installed packages offer plug-ins."""

EXPERIMENTS = shipped_path("conf").parent / "experiments"
"""The folder of a checkout whose packages are plug-ins; an installed package has none."""

NO_CHECKOUT = "memlab's own experiments are in a checkout of it alone, and this memlab runs from an installed package"

OWN = "memlab"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclasses.dataclass(frozen=True)
class Plugin:
    """A loaded package: its folder or single file, the modules that were named, and the digest of its source."""

    package: str
    place: Path
    modules: tuple[str, ...]
    version: str | None
    digest: str


_active: dict[str, Plugin] = {}
_named: dict[str, Path] = {}
"""Package -> place of every plug-in that was found, those that cannot be imported as well."""

_loaded: dict[str, Plugin] = {}
"""Every plug-in that this process has imported: arms that were made with it outlive the command line that named it."""


def activate(names: Sequence[str], folder: Path | None = None, versions: Mapping[str, str | None] | None = None
             ) -> list[str]:
    """Import the plug-ins of these names in place of the earlier ones; return what is wrong with each.

    ``folder``, a copy of their source, is searched instead of Python's path; ``versions`` are those of the originals.
    """
    _active.clear()
    _named.clear()
    faults = []
    for name in names:
        try:
            plugin = _use(name, folder, versions or {})
        except MemlabError as error:
            faults.append(str(error))
        else:
            _active[plugin.package] = _loaded[plugin.package] = plugin
    return faults


def _use(name: str, folder: Path | None, versions: Mapping[str, str | None]) -> Plugin:
    """Find and import one plug-in; raise MemlabError if that fails."""
    offers = {} if folder else plugin_entry_points()
    module = offers[name].module if name in offers else name
    package = module.partition(".")[0]
    if package == OWN:
        raise MemlabError(f"'{name}' is memlab itself", fix="name code outside memlab, or leave it out")
    if package in sys.stdlib_module_names:
        raise MemlabError(f"'{name}' is a part of Python, no plug-in")
    spec = _spec(package, folder) if _MODULE.fullmatch(module) else None
    if spec is None:
        known = [*offers, *experiments()]
        raise MemlabError(f"there is no module or installed plug-in '{name}'; " + (
            did_you_mean(name, known) if known else
            f"no installed package has an entry point in the group {GROUP}, and {NO_CHECKOUT}"))
    place = _named[package] = _place(spec)
    before = _active.get(package) or _loaded.get(package)
    digest = before.digest if before and before.place == place else source_digest(place)
    try:
        _load(spec)
        _import(module)
    except ImportError as error:
        raise MemlabError(f"the plug-in '{name}' cannot be imported ({error})") from error
    modules = (*(_active[package].modules if package in _active else ()), module)
    version = versions[package] if package in versions else _version(package, module, offers)
    return Plugin(package, place, tuple(dict.fromkeys(modules)), version, digest)


def plugin_entry_points() -> dict[str, metadata.EntryPoint]:
    """Return the plug-ins that installed packages offer, by name, without importing one."""
    return {point.name: point for point in sorted(metadata.entry_points(group=GROUP), reverse=True)}


def _spec(package: str, folder: Path | None = None) -> ModuleSpec | None:
    """Find a package without importing it: on Python's path, in the working folder, then among the experiments."""
    try:
        spec = PathFinder.find_spec(package, [str(folder)]) if folder else importlib.util.find_spec(package)
    except (ImportError, ValueError):  # a module without a spec, such as __main__
        return None
    if not folder and (spec is None or spec.origin is None):  # a folder without __init__.py hides nothing
        spec = PathFinder.find_spec(package, [os.getcwd(), str(EXPERIMENTS)]) or spec
    return spec if spec is not None and spec.name == package else None


def _place(spec: ModuleSpec) -> Path:
    """Return the folder of a package, or the file of a single module; raise MemlabError if it has none."""
    file = Path(spec.origin or "")
    if not spec.origin or not file.is_file():
        raise MemlabError(f"'{spec.name}' is neither a file nor a folder with an __init__.py",
                          fix=f"write {spec.name}.py, or {spec.name}/__init__.py")
    return file.parent.resolve() if spec.submodule_search_locations else file.resolve()


def _load(spec: ModuleSpec) -> None:
    """Import a package from where it was found, unless it is imported already; raise ImportError if it fails."""
    if spec.name in sys.modules or spec.loader is None:
        return
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[spec.name]
        if isinstance(error, Exception | SystemExit):
            raise ImportError(one_line(error)) from error
        raise


def _import(module: str) -> ModuleType:
    """Import a module outside memlab; raise ImportError whatever its code raises."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ImportError(one_line(error)) from error


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error of foreign code in one line."""
    return safe_line(f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": "), 300)


def source_digest(place: Path) -> str:
    """Return the digest of the source files of a package or a module, by file names and content."""
    total = hashlib.blake2b(digest_size=16)
    for path in [place] if place.is_file() else sorted(place.rglob("*")):
        if path.name.endswith((".py", *EXTENSION_SUFFIXES)) and path.is_file():
            total.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def _version(package: str, module: str, offers: Mapping[str, metadata.EntryPoint]) -> str | None:
    """Return the version of the distribution that offers a plug-in, or its ``__version__``; None if it has neither."""
    for point in offers.values():
        if point.module.partition(".")[0] == package and point.dist is not None:
            return str(point.dist.version)
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        version = getattr(sys.modules[package], "__version__", getattr(sys.modules[module], "__version__", None))
        return None if version is None else str(version)


def active() -> list[Plugin]:
    """Return the plug-ins that the command line names."""
    return list(_active.values())


def conf_folders() -> list[Path]:
    """Return the folders ``conf`` of the named plug-ins that have one."""
    return [place / "conf" for place in _named.values() if (place / "conf").is_dir()]


def owner(target: str) -> str | None:
    """Return the package whose class a ``_target_`` may name: memlab or a named plug-in; None if it is another.

    >>> owner("memlab.stages.rank.select.Fixed"), owner("os.system")
    ('memlab', None)
    """
    package, dot, _ = target.partition(".")
    return package if dot and (package == OWN or package in _active) else None


def refusal(target: str) -> str:
    """Return why a ``_target_`` without an owner is refused."""
    if target.partition(".")[0] in _named:
        return f"'{target}' is of a plug-in that cannot be used"
    return (f"'{target}' is outside memlab; only classes of memlab and of the plug-ins that the command line names "
            "(plugins=[NAME]) are made from configuration")


def load_class(target: str) -> Any:
    """Return what a ``_target_`` with an owner names; raise ImportError or AttributeError if there is none."""
    module, _, name = target.rpartition(".")
    foreign = owner(target) != OWN
    return getattr(_import(module) if foreign else importlib.import_module(module), name)


def offered_folders() -> dict[str, Path]:
    """Return the folder ``conf`` of each plug-in that is offered and not named yet; imports none of them."""
    offers = {name: point.module.partition(".")[0] for name, point in sorted(plugin_entry_points().items())}
    return {name: Path(spec.origin).parent / "conf" for name, package in (experiments() | offers).items()
            if package not in _active and (spec := _spec(package)) and spec.origin}


def experiments() -> dict[str, str]:
    """Return the experiments that are plug-ins, each under its own name; none but in a checkout."""
    names = sorted(folder.parent.name for folder in EXPERIMENTS.glob("*/conf"))
    return dict(zip(names, names))


def plugin_versions(*things: Any) -> dict[str, dict[str, str | None]]:
    """Return package -> version and digest of the plug-ins whose classes these objects are made of."""
    return {name: {"version": _loaded[name].version, "digest": _loaded[name].digest} for name in places(*things)}


def places(*things: Any) -> dict[str, Path]:
    """Return package -> folder or file of the plug-ins whose classes these objects are made of."""
    packages = {cls.__module__.partition(".")[0] for cls in classes_of(*things)} if _loaded else set()
    return {name: _loaded[name].place for name in sorted(packages & _loaded.keys())}
