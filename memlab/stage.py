"""The contract of a stage: a small frozen class whose fields are its configuration, checked on construction.

A stage declares the tables that it reads and writes; it receives only the former and returns the latter. It may also
return the table ``notes`` (``memlab.tables.Notes``), which the manifest of a run summarises. A field names each file
that it needs. This guards against accidents; ``memlab.runtime.leak_guard`` names a stage that looks elsewhere::

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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, dataclass_transform, runtime_checkable

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store


STRICT = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
"""Refuse unknown fields; never read ``true`` as 1."""

Names = Annotated[tuple[str, ...], Field(strict=False)]
"""A tuple of names, which YAML gives as a list."""

LocalPath = Annotated[Path, Field(strict=False)]
"""A path, which YAML gives as a string."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field, dataclasses.field))
def stage(cls: type) -> Any:
    """Make a class a frozen, validated dataclass that refuses unknown fields and loose types."""
    return pydantic_dataclass(frozen=True, kw_only=True, config=STRICT)(cls)


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


def spec(thing: Any) -> Any:
    """Describe a stage by everything that can change its result, as plain JSON values.

    A part with an ``identity`` method (a model) describes itself, so that a path, an address or a device number never
    enters. Any other dataclass is described by its class and its fields.
    """
    if hasattr(thing, "identity"):
        return thing.identity()
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {f.name: spec(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
        return {"is": f"{type(thing).__module__}.{type(thing).__qualname__}", **fields}
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
class Nothing:
    """An empty slot: it returns the tables that a stage in the slot would write, without rows; by default none.

    >>> Nothing(writes=("hits",)).run(Tables(), None)["hits"].height
    0
    """

    reads: ClassVar[tuple[str, ...]] = ()

    writes: Names = ()

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the tables named in ``writes``, without rows."""
        return Tables(**{name: empty(name) for name in self.writes})
