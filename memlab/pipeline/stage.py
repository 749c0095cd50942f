"""The contract of a stage: a small frozen class whose fields are its configuration, checked on construction.

A stage declares the tables that it reads and writes; it receives only the former and returns the latter. It may also
return the table ``notes`` (``memlab.pipeline.tables.Notes``), which the manifest of a run summarises. A field names
each file
that it needs. A stage that sees gold, or is fitted on all questions, says so in its decorator. This guards against
accidents; the leak guard of memlab's tests names a stage that looks elsewhere::

    @stage
    class Fixed:
        reads: ClassVar = ("ranking",)
        writes: ClassVar = ("ranking",)
        k: Annotated[int, Field(ge=1)] = 10

        def run(self, tables: Tables, store: Store) -> Tables: ...
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, dataclass_transform, runtime_checkable

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo

from memlab.pipeline.tables import GOLD, Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store


STRICT = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
"""Refuse unknown fields; never read ``true`` as 1."""

Names = Annotated[tuple[str, ...], Field(strict=False)]
"""A tuple of names, which YAML gives as a list."""

LocalPath = Annotated[Path, Field(strict=False)]
"""A path, which YAML gives as a string."""


Hidden = Literal["gold", "ids"]
"""What a system must not see before the answers: answers, types and evidence; and the benchmark's own ids."""


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What a stage class declares in its decorator (``stage``); nothing is inherited."""

    sees: tuple[Hidden, ...] = ()
    fits: Literal["all"] | None = None


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field, dataclasses.field))
def stage(cls: type | None = None, /, *, sees: tuple[Hidden, ...] = (), fits: Literal["all"] | None = None) -> Any:
    """Make a class a frozen, validated dataclass that refuses unknown fields and loose types.

    Args:
        cls: The class, where the decorator has no arguments.
        sees: Hidden tables that the stage may read in any slot: ``gold`` or ``ids``. A stage that sees gold without
            being fitted is an oracle; one that sees ids makes the figures of its arm invalid.
        fits: ``all`` for a stage that learns from all questions, by folds: no part of the data will do.
    """
    def declare(cls: type) -> Any:
        made: Any = pydantic_dataclass(frozen=True, kw_only=True, config=STRICT)(cls)
        made.__declaration__, made.__repr__ = Declaration(sees, fits), brief_repr
        return made

    return declare if cls is None else declare(cls)


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field, ``dataclasses.MISSING`` if it has none."""
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    # pydantic keeps the default in an object of its own
    return value.get_default(call_default_factory=True) if isinstance(value, FieldInfo) else value


def brief_repr(thing: Any) -> str:
    """Return the call that makes an object of a dataclass, without fields that have their defaults.

    >>> brief_repr(EmptyStage()), brief_repr(EmptyStage(writes=("hits",)))
    ('EmptyStage()', "EmptyStage(writes=('hits',))")
    """
    values = [(field, getattr(thing, field.name)) for field in dataclasses.fields(thing) if field.repr]
    given = [f"{field.name}={value!r}" for field, value in values
             if (default := default_of(field)) is dataclasses.MISSING or value != default]
    return f"{type(thing).__name__}({', '.join(given)})"


@runtime_checkable
class Stage(Protocol):
    """One step of the pipeline: tables in, tables out."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the tables that the stage receives; a class attribute."""

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the tables that the stage returns; a class attribute."""

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the tables named in ``writes``, made from those named in ``reads``; and ``notes``, if any."""


def declaration(stage: object) -> Declaration:
    """Return what the class of a stage itself declares, and not a class that it inherits from."""
    declared: Declaration = vars(type(stage)).get("__declaration__", Declaration())
    return declared


def learns(stage: Stage) -> bool:
    """Return whether a stage is fitted on all questions; with a saved fit it reads no gold, and is not."""
    declared = declaration(stage)
    return declared.fits == "all" and (not declared.sees or not GOLD.isdisjoint(stage.reads))


def label_free(stage: object) -> str:
    """Return how to get a stage without labels that is fitted on labels; "" if no command of memlab saves its fit.

    Its class attribute ``training`` has words of memlab train, and those that load the file that it writes.
    """
    command, loaded = getattr(stage, "training", ("", ""))
    return f"fit it once on data with labels (memlab train {command}), then give {loaded}" if command else ""


def name_of(cls: type) -> str:
    """Return the declared name of a class: memlab has no two classes of one name, so that a file of it may move.

    >>> name_of(EmptyStage), name_of(Path)
    ('memlab.EmptyStage', 'pathlib.Path')
    """
    own = __name__.partition(".")[0]
    return f"{own if cls.__module__.startswith(f'{own}.') else cls.__module__}.{cls.__qualname__}"


def classes_of(*things: Any) -> Iterator[type]:
    """Yield the class of each object and of all its parts, and the classes that these inherit from.

    Fields in which equal objects may differ (``compare=False``) are no parts: they hold what a run leaves behind.
    """
    for thing in things:
        yield from type(thing).__mro__
        if dataclasses.is_dataclass(thing):
            yield from classes_of(*(getattr(thing, field.name) for field in dataclasses.fields(thing) if field.compare))
        elif isinstance(thing, Mapping):
            yield from classes_of(*thing.values())
        elif isinstance(thing, list | tuple):
            yield from classes_of(*thing)


def spec(thing: Any) -> Any:
    """Describe a stage by everything that can change its result, as plain JSON values.

    A part with an ``identity`` method (a model) describes itself, so that a path, an address or a device number never
    enters. Any other dataclass is described by its class and its fields.
    """
    if hasattr(thing, "identity"):
        return thing.identity()
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {f.name: spec(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
        return {"is": name_of(type(thing)), **fields}
    if isinstance(thing, dict):
        return {str(k): spec(v) for k, v in thing.items()}
    if isinstance(thing, list | tuple | set | frozenset):
        return [spec(v) for v in thing]
    return str(thing) if isinstance(thing, Path) else thing


def spec_digest(thing: Any) -> str:
    """Return the digest of a specification; equal specifications have equal digests in any process."""
    text = json.dumps(spec(thing), sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@stage
class EmptyStage:
    """The stage of an empty slot: it returns the tables named in ``writes`` without rows; by default none.

    >>> EmptyStage(writes=("hits",)).run(Tables(), None)["hits"].height
    0
    """

    reads: ClassVar[tuple[str, ...]] = ()

    writes: Names = ()

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the tables named in ``writes``, without rows."""
        return Tables(**{name: empty(name) for name in self.writes})
