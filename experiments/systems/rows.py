"""Write docs/rows.md from rows.yaml: each thing that the write-ups name, with the file, the command and the test of it.

Nothing is written, and each fault is printed, if a file, a test or a choice that a row names is gone.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from memlab.experiment.config.instantiate import options
from memlab.experiment.config.overrides import groups, read_overrides
from memlab.memory.memory import Memory
from memlab.report.markdown import escape

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/rows.md"
NAMES = {"rag_v1": "RAG Memory Provider v1 (`rag_v1`)", "elizaos": "ElizaOS (`elizaos`)",
         "memorystack": "MemoryStack (`memorystack`)", "gimli": "Gimli (`gimli`)", "oltramem": "OltraMem (`oltramem`)",
         "toolkit": "The toolkit"}
NEEDS = ("weights", "a chat model", "an account", "a card", "a cluster", "the data set")
HEAD = """# Every row of the write-ups

<!-- made from experiments/systems/rows.yaml by experiments/systems/rows.py -->

What the write-ups of the [five systems](systems.md) name, and what the toolkit itself is to have: where it
lies, the command, or the call in Python, that runs it and the test that shows it. {works} of {all} work, and
{partly} do in part, with the reason. {needs} are implemented and tested with small or random models; for
figures of their own they need what memlab does not bring along: weights, a chat model, an account at a service,
a card (GPU), a cluster, or the benchmark's files. None is missing.
"""

Row = dict[str, str]


def rows() -> dict[str, list[Row]]:
    """Return the rows of each source, in their order."""
    return {str(name): list(of) for name, of in yaml.safe_load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")).items()}


def faults(every: dict[str, list[Row]]) -> list[str]:
    """Return what is wrong: states without a reason, files, tests and choices that are not there."""
    return [f"{source}, row {number} ({row.get('what')}): {fault}" for source, of in every.items()
            for number, row in enumerate(of, start=1) for fault in _faults(row)]


def _faults(row: Row) -> Iterator[str]:
    if row.keys() - {"why"} != {"what", "state", "file", "run", "test"}:
        yield f"expected what, state, why, file, run and test, got {', '.join(row)}"
        return
    state = row["state"]
    if state not in ("works", "partly") and state.removeprefix("needs ") not in NEEDS:
        yield f"the state is '{state}'"
    if (state == "partly") != ("why" in row):
        yield "a row that works in part says why, and no other"
    if not (ROOT / row["file"]).is_file():
        yield f"there is no file {row['file']}"
    for test in row["test"].split(", "):
        file, _, function = test.partition("::")
        if not (ROOT / file).exists():
            yield f"there is no test {file}"
        elif function and function not in _functions(ROOT / file):
            yield f"{file} has no {function}"
    yield from _choices(row["run"])


def _functions(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef)}


def _choices(command: str) -> Iterator[str]:
    """Yield each technique, preset or experiment that a command names and that is not there, or what a call misses."""
    if command.startswith("Memory."):
        yield from (f"{command}: {fault}" for fault in _misfits(command))
    read_overrides(word for word in command.split() if word.startswith("plugins="))
    for slot, choice in re.findall(r"[ +]([a-z_]+(?:/[a-z_]+)?)=([\w.-]+)", command):
        if slot in groups() and choice not in [*options(slot), "null"]:
            yield f"{command}: there is no {slot}={choice}"


def _misfits(command: str) -> Iterator[str]:
    """Yield what is wrong with a call of a method of Memory: its name, its arguments, or the types of plain ones."""
    call = ast.parse(command, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    method = getattr(Memory, call.func.attr, None)
    if method is None:
        yield f"Memory has no {call.func.attr}"
        return
    named = {str(word.arg): word.value for word in call.keywords}
    try:
        given = inspect.signature(method).bind(None, *call.args, **named)
    except TypeError as fault:
        yield str(fault)
        return
    types = get_type_hints(method)
    for name, value in given.arguments.items():
        with suppress(ValueError, TypeError):  # of a variable, which has no value here
            plain = ast.literal_eval(value)
            try:
                TypeAdapter(types[name]).validate_python(plain, strict=True)
            except ValidationError as fault:
                yield f"{name}: {fault.errors()[0]['msg']}"


def page(every: dict[str, list[Row]]) -> str:
    """Return the page."""
    states = Counter(row["state"].partition(" ")[0] for of in every.values() for row in of)
    parts = [HEAD.format(all=sum(states.values()), **states)]
    number = 0
    for source, of in every.items():
        lines = ["| # | what | state | file | command | test |", "| ---: | --- | --- | --- | --- | --- |"]
        for row in of:
            number += 1
            state = f"partly: {row['why']}" if "why" in row else row["state"]
            tests = ", ".join(f"`{test}`" for test in row["test"].split(", "))
            cells = [escape(row["what"]), escape(state), f"`{row['file']}`", f"`{row['run']}`", tests]
            lines.append(f"| {number} | {' | '.join(cells)} |")
        parts.append(f"## {NAMES[source]}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or print the faults and return 1."""
    every: dict[str, Any] = rows()
    if wrong := faults(every):
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    PAGE.write_text(page(every), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
