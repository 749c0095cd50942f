"""The command ``memlab explain``: slots, the techniques of a slot, the settings of a technique, with their reasons.

``a.b`` and ``a/b`` name the same slot; ``rank/select=gap``, as a run takes it, is a technique too.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from omegaconf import OmegaConf

from memlab.experiment.config import comments
from memlab.experiment.config.choices import GLOBAL, all_choices
from memlab.experiment.config.instantiate import CONF, choice_settings, find_class, options, with_defaults
from memlab.experiment.config.overrides import groups, read_overrides
from memlab.experiment.config.plugins import GROUP, NO_CHECKOUT, experiments, plugin_entry_points
from memlab.support.errors import Faults, MemlabError, did_you_mean
from memlab.support.help_text import Parser
from memlab.support.machine import no_collection
from memlab.support.terminal import print

_FOREIGN = ("plugins=", "conf_dir=")
_EPILOG = """\
plugins=[NAME] and conf_dir=FOLDER add the techniques of others.

    memlab explain                   all slots, and the settings of a run
    memlab explain rank/select       its techniques, one line each
    memlab explain rank/select/gap   its settings, with defaults, types and reasons
"""
_LIMITS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
NONE = "Nothing is done here."
"""Description of the technique ``none`` of a slot that may be empty."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the pages of the names; return 0, or 2 after a message about a name that there is not."""
    parser = Parser(prog="memlab explain", epilog=_EPILOG,
                    description="Say what each slot, technique and setting of a run is.")
    parser.add_argument("name", nargs="*", help="SLOT, SLOT/TECHNIQUE, or a setting such as rank.select.k")
    words = parser.parse_args(argv).name
    names = [word for word in words if not word.startswith(_FOREIGN)]
    try:
        if faults := read_overrides(word for word in words if word not in names)[1]:
            raise Faults(f"{argument}: {fault}" for argument, fault in faults)
        for page in [explain(name) for name in names] or [overview()]:
            print(page)
    except MemlabError as error:
        print(f"memlab explain: {error}", file=sys.stderr)
        return 2
    return 0


def overview() -> str:
    """Return the page of all slots and of the settings that belong to none."""
    offers = ", ".join(sorted(plugin_entry_points())) or f"none (no package has an entry point in {GROUP})"
    return "\n\n".join((
        "Slots of a run, with their default (memlab run SLOT=TECHNIQUE):",
        _lines([*comments.slot_lines(), *comments.BESIDE]),
        "Settings of a run (memlab run SETTING=VALUE):",
        _lines(comments.run_settings()),
        f"Plug-ins of installed packages (plugins=[NAME]): {offers}",
        f"Plug-ins of memlab's experiments (plugins=[NAME]): {', '.join(experiments()) or f'none ({NO_CHECKOUT})'}",
        "memlab explain SLOT lists its techniques, memlab explain SLOT/TECHNIQUE its settings."))


@no_collection()
def explain(name: str) -> str:
    """Return the page of a slot, a technique or a setting; raise MemlabError for a name that there is not."""
    name = name.lstrip("+").rstrip("/.=")
    slot, rest = _split(name)
    if slot and not rest:
        return _slot_page(slot)
    if slot and rest in options(slot):
        return _technique_page(slot, rest)
    default = next((line.default for line in comments.slot_lines() if line.name == slot), "")
    place = f"{slot.replace('/', '.')}.{rest}."
    rows = settings(slot, default) if default in options(slot) else []
    if entries := [row for row in rows if f"{row.place}.".startswith(place)]:
        return "\n".join((f"{slot}={default} is the default here; its setting{'s' * (len(entries) > 1)}:",
                          *map(str, entries)))
    if slot:
        raise MemlabError(f"{slot} has no technique '{rest}'", fix=did_you_mean(rest, options(slot)))
    slots, group = (*comments.slot_lines(), *comments.BESIDE), f"{name.replace('.', '/')}/"
    below = [*(line for line in slots if line.name.startswith(group)),
             *(line for line in comments.run_settings() if f"{line.name}.".startswith(f"{name}."))]
    if below:
        return _lines(below)
    raise _unknown(name)


def _split(name: str) -> tuple[str, str]:
    """Return the slot that a name begins with, or "", and what follows: a technique, or a setting."""
    for slot in sorted(groups(), key=len, reverse=True):
        for spelling in {slot, slot.replace("/", ".")}:
            if name == spelling:
                return slot, ""
            if name.startswith(spelling) and name[len(spelling)] in "/.=":
                return slot, name[len(spelling) + 1:]
    return "", name


def _unknown(name: str) -> MemlabError:
    """Return the error for a name of no slot: that of a technique alone is answered with its slots."""
    last = re.split(r"[/.=]", name)[-1]
    known = {choice for choice in all_choices(CONF) if not choice.startswith("arm/")}
    slots = sorted(choice for choice in known if choice.rpartition("/")[2] == last and "/" in choice)
    if slots:
        return MemlabError(f"there is no slot '{name}'", fix=f"memlab explain {' or '.join(slots[:5])}")
    names = [line.name for line in (*comments.slot_lines(), *comments.BESIDE, *comments.run_settings())]
    return MemlabError(f"there is no slot '{name}'", fix=did_you_mean(name.replace(".", "/"), names))


def _lines(rows: Sequence[tuple[str, str, str]]) -> str:
    """Return aligned rows, one line each."""
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    heads = ("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths) if width) for row in rows)
    return "\n".join(f"{head}  {row[2]}".rstrip() for head, row in zip(heads, rows))


def _slot_page(slot: str) -> str:
    """Return the techniques of a slot, each with the first sentence about it."""
    lines = (*comments.slot_lines(), *comments.BESIDE)
    about = next((line for line in lines if line.name == slot), comments.Described(slot, "", ""))
    head = f"{slot}: {about.text}" if about.text else slot
    default = f" (default: {about.default})" if about.default in options(slot) else ""
    example = options(slot)[0]
    return "\n\n".join((head + default, _lines([(name, "", _first(slot, name)) for name in options(slot)]),
                        f"memlab explain {slot}/{example} has its settings and their reasons."))


def _first(slot: str, name: str) -> str:
    choice = f"{slot}/{name}"
    docstring = (_class_of(choice).__doc__ or "").strip().splitlines()
    return comments.first_sentence(_about(choice)) or comments.first_sentence(docstring)


def _about(choice: str) -> list[str]:
    """Return the comment of a choice: the technique ``none`` needs none."""
    entry = all_choices(CONF)[choice]
    return [NONE] if entry.path == CONF / "config.yaml" else comments.comment(choice, entry)


def _class_of(choice: str) -> Any:
    """Return the class that a choice names, or ``object``."""
    target = _statement(choice).get("_target_")
    return target and find_class(str(target), "", []) or object


def _statement(choice: str) -> dict[str, Any]:
    """Return what a choice states, with what the choices in its list of defaults state."""
    own = dict(choice_settings(choice))
    slot = choice.rpartition("/")[0]
    listed = own.pop("defaults", []) if slot.partition("/")[0] not in GLOBAL else []
    bases = [_statement(f"{slot}/{entry}") for entry in listed if f"{slot}/{entry}" in all_choices(CONF)]
    merged: Any = OmegaConf.to_container(OmegaConf.merge(*bases, own))
    return dict(merged)


def _technique_page(slot: str, name: str) -> str:
    """Return the comment of a technique, then its settings, or what its file sets in other slots."""
    choice = f"{slot}/{name}"
    entry, prefix = all_choices(CONF)[choice], "+" if slot in ("exp", "profile") else ""
    lines = [f"{prefix}{slot}={name}", "", *(f"  {line}".rstrip() for line in _about(choice))]
    if lines[-1].strip() == NONE:
        return "\n".join(lines)
    if stated := [f"  {line}".rstrip() for line in comments.body(choice, entry) if not line.startswith("_target_:")]:
        lines += ["", "It sets:", "", *stated]
    if "_target_" in _statement(choice):
        lines += ["", *([str(one) for one in settings(slot, name)] or ["It has no settings."])]
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting of a technique: where it is, its default, its type, its class, and its reason."""

    place: str
    value: Any
    kind: str
    owner: type
    reason: str = ""

    def __str__(self) -> str:
        value = yaml.safe_dump(self.value, default_flow_style=True, width=10_000, allow_unicode=True)
        text = " ".join(value.removesuffix("\n").removesuffix("\n...").split())
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        why = textwrap.wrap(self.reason.replace("`", ""), 76, initial_indent="    ", subsequent_indent="    ")
        return "\n".join([f"{self.place}={shown}" + f"  ({self.kind})" * bool(self.kind), *why])


def settings(slot: str, name: str) -> list[Setting]:
    """Return all settings of a technique, with the comments of their classes as reasons."""
    return [dataclasses.replace(one, reason=comments.reasons(one.owner).get(one.place.rpartition(".")[2], ""))
            for one in bare_settings(f"{slot}/{name}")]


def bare_settings(choice: str) -> list[Setting]:
    """Return all settings of a technique without their reasons, which are read from source."""
    return [*_flat(with_defaults(_statement(choice)), choice.rpartition("/")[0].replace("/", "."))]


def _flat(node: Mapping[str, Any], place: str) -> Iterator[Setting]:
    cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
    kinds = get_type_hints(cls, include_extras=True) if cls else {}
    for key, value in node.items():
        at = f"{place}.{key}"
        parts = {str(i): item for i, item in enumerate(value)} if isinstance(value, list) else value
        if isinstance(parts, Mapping) and any(isinstance(item, Mapping) for item in (parts, *parts.values())
                                              if isinstance(item, Mapping) and "_target_" in item):
            for i, part in ({"": parts} if "_target_" in parts else parts).items():
                yield from _flat(part, f"{at}.{i}".rstrip("."))
        elif key != "_target_":
            yield Setting(at, value, _kind(kinds[key]) if key in kinds else "", cls or object)


def _kind(kind: Any) -> str:
    """Return a type in words.

    >>> from pydantic import Field
    >>> _kind(Annotated[int, Field(ge=1, lt=9)] | None), _kind(Literal["a", "b"]), _kind(dict[str, float])
    ('int >= 1 < 9 or null', 'a | b', 'dict[str, float]')
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = (limit for info in arguments[1:] for limit in getattr(info, "metadata", ()))
        return " ".join([_kind(arguments[0]), *(f"{sign} {getattr(limit, name):g}" for limit in limits
                                                for name, sign in _LIMITS.items() if hasattr(limit, name))])
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin in (Union, UnionType):
        return " or ".join("null" if part is NoneType else _kind(part) for part in arguments)
    if arguments:
        inner = ", ".join("..." if part is ... else _kind(part) for part in arguments)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    return str(getattr(kind, "__name__", kind))


if __name__ == "__main__":
    raise SystemExit(main())
