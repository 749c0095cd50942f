"""The help page of ``memlab run``: the command, all slots, and the settings of what is chosen, with their reasons."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import yaml
from omegaconf import OmegaConf

from memlab.config.compose import compose
from memlab.config.instantiate import find_class, options
from memlab.config.overrides import groups
from memlab.config.plugins import GROUP, plugin_entry_points
from memlab.errors import Faults
from memlab.runtime.machine import no_collection

USAGE = """memlab: what makes retrieval for long-term conversational memory work

  memlab run                      one arm on embedded data, all defaults (also: memlab run)
  memlab run rank/select=gap      another technique in one slot
  memlab run rank.select.k=5      another value
  memlab run -m rank.select.k=5,10,20            a sweep: one arm per value
  memlab run +exp=adaptive_k      a declared experiment: arms, contrasts, report
  memlab run ... plan=true        what would run, what is cached, what it costs
  memlab run ... hydra/launcher=local|slurm      in processes, or as jobs

Exit status: 0 done, 1 an arm failed, 2 the configuration is faulty, 130 interrupted.

== Slots, and the techniques for each (slot=technique) ==

{slots}

== Plug-ins of installed packages (plugins=[NAME]; further files: conf_dir=FOLDER) ==

{plugins}

== Settings of what is chosen by these arguments (slot.setting=value) ==

{settings}"""


@no_collection()
def help_page(arguments: Sequence[str], multirun: bool = False) -> str:
    """Describe the command, all slots, and the settings of what the arguments choose; raise Faults if they are bad."""
    configs, faults = compose(arguments, multirun)
    if configs is None or faults:
        raise Faults(faults)
    slots = (f"{slot}: {', '.join(options(slot))}" for slot in sorted(groups()) if not slot.startswith("hydra"))
    settings: Any = OmegaConf.to_container(configs.base)
    del settings["hydra"]
    offers = ", ".join(sorted(plugin_entry_points())) or f"none (no installed package has an entry point in {GROUP})"
    return USAGE.format(slots="\n".join(slots), plugins=offers, settings="\n".join(lines_with_reasons(settings)))


@cache
def reasons(cls: type) -> dict[str, str]:
    """Return setting -> the comment beside or above its default, in the class or in one that it inherits from.

    >>> from memlab.rank.select import Fixed
    >>> reasons(Fixed)
    {'k': 'K of most published systems'}
    """
    bases = [base for base in reversed(cls.__mro__) if is_dataclass(base)]
    return {name: text for base in bases for name, text in _own_reasons(base).items()}


def _own_reasons(cls: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # a plug-in without source
        return {}
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    alone = {number for number, line in enumerate(source.splitlines(), 1) if line.lstrip().startswith("#")}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for field in definition.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            first = field.lineno
            while first - 1 in alone:
                first -= 1
            places = [*range(first, field.lineno), *range(field.lineno, (field.end_lineno or field.lineno) + 1)]
            texts[field.target.id] = " ".join(comments[place] for place in places if place in comments)
    return {name: text for name, text in texts.items() if text and not text.startswith("noqa")}


def lines_with_reasons(node: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a configuration as YAML, each setting with its reason.

    >>> print("\\n".join(lines_with_reasons({"select": {"_target_": "memlab.rank.select.Fixed", "k": 10}})))
    select:
      _target_: memlab.rank.select.Fixed
      k: 10  # K of most published systems
    """
    cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
    texts = reasons(cls) if cls else {}
    pad = "  " * depth
    for key, value in node.items():
        note = f"  # {texts[key]}" if key in texts else ""
        if isinstance(value, Mapping) and value:
            yield f"{pad}{key}:{note}"
            yield from lines_with_reasons(value, depth + 1)
        else:
            plain = yaml.safe_dump({key: value}, width=10_000, allow_unicode=True, default_flow_style=False)
            first, *rest = plain.rstrip("\n").split("\n")
            yield f"{pad}{first}{note}"
            yield from (f"{pad}{line}" for line in rest)
