"""The structure of the package, measured from its own imports and definitions."""

from __future__ import annotations

import ast
import runpy
import tomllib
from collections import defaultdict
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from memlab.models.serving.environment import STEPS
from tests.foreign import pinned

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "memlab"
BUDGET = runpy.run_path(str(ROOT / ".ci" / "budget.py"))
STAGES = ("write", "query", "search", "rank", "read", "judge")

ORDER = (
    ("support", "support.text"),
    ("pipeline",),
    ("models",),
    ("store",),
    ("data",),
    ("evaluate",),
    ("stages", *(f"stages.{name}" for name in STAGES), "stages.systems"),
    ("pipeline.pipeline",),
    ("data.questions",),
    ("experiment.config", "experiment.harness"),
    ("learn", "stages.oracle", "evaluate.score", "evaluate.peers"),
    ("memory",),
    ("report", "experiment.track"),
    ("experiment.cluster",),
    ("commands", "run", "__main__", ""))
"""Rooms of memlab, line by line: what a room imports when it is loaded lies on its own line or on one above it."""


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    return {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Modules that a module imports, anywhere in it, for types as well."""
    return frozenset(name for node in ast.walk(tree(modules()[module])) for name in names_in(node))


def names_in(node: ast.AST) -> set[str]:
    """Modules that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        paths = {f"{node.module}.{alias.name}" for alias in node.names}
        return {path if path in modules() else node.module for path in paths}
    return set()


def room_of(module: str) -> str:
    """The room of ``ORDER`` that holds a module: the longest name that begins its path."""
    path = module.removeprefix("memlab").removeprefix(".")
    return max((room for line in ORDER for room in line if not room or path == room or path.startswith(f"{room}.")),
               key=len)


@cache
def rooms() -> dict[str, frozenset[str]]:
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for other in imports(module) & modules().keys():
            if room_of(other) != room_of(module):
                edges[room_of(module)].add(room_of(other))
    return {name: frozenset(others) for name, others in edges.items()}


def pairs(edges: dict[str, frozenset[str]]) -> list[tuple[str, str]]:
    """Both ends of every edge that has an edge back."""
    return sorted((a, b) for a, others in edges.items() for b in others if a < b and a in edges.get(b, ()))


def test_every_import_of_memlab_names_a_module() -> None:
    wanted = {(module, name) for module in modules() for name in imports(module) if name.split(".")[0] == "memlab"}
    assert not [(module, name) for module, name in wanted if name not in modules()]


def test_no_two_files_import_each_other() -> None:
    assert pairs({module: imports(module) for module in modules()}) == []


def test_imports_go_down_the_rooms_of_memlab() -> None:
    line = {room: number for number, rooms in enumerate(ORDER) for room in rooms}
    loaded = {module: {name for node in BUDGET["imports_at_load"](tree(file)) for name in names_in(node)}
              for module, file in modules().items()}
    assert {room_of(module) for module in modules()} == {*line}
    assert [(module, other) for module, others in loaded.items() for other in others & modules().keys()
            if line[room_of(other)] > line[room_of(module)]] == []


def test_cycles_are_found_over_any_number_of_packages() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set[str]()}
    assert BUDGET["cycles"](edges) == [{"a", "b", "c"}]


def test_packages_form_no_cycle() -> None:
    edges = BUDGET["package_edges"]({module: tree(file) for module, file in modules().items()})
    assert edges["experiment.harness"] > {"experiment.config", "pipeline.pipeline"}
    assert BUDGET["cycles"](edges) == []


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_package_imports_another(stage: str) -> None:
    assert rooms().get(f"stages.{stage}", frozenset()) & {f"stages.{name}" for name in STAGES} == frozenset()


def test_no_room_imports_a_system_and_no_system_another() -> None:
    assert {name for name, others in rooms().items() if "stages.systems" in others} == set()
    systems = {module: module.split(".")[3] for module in modules() if module.startswith("memlab.stages.systems.")}
    assert len({*systems.values()}) == 5
    assert not [(module, other) for module in systems for other in imports(module) & systems.keys()
                if systems[module] != systems[other]]


def test_whoever_asks_a_chat_model_hands_over_notes() -> None:
    asking = [node for file in modules().values() for node in ast.walk(tree(file)) if isinstance(node, ast.Call)
              and isinstance(node.func, ast.Attribute) and node.func.attr == "completions"]
    assert asking
    assert all(len(call.args) == 3 for call in asking)


def test_nothing_imports_a_command() -> None:
    commands = {"memlab.run", *(module for module in modules() if module.startswith("memlab.commands."))}
    shared = {f"memlab.commands.{name}" for name in ("explain", "judge_files", "score", "store")}   # of two commands
    found = {(module, other) for module in modules() for other in imports(module) & commands - shared}
    assert found == set()


def test_no_class_name_is_defined_twice() -> None:
    """``memlab.pipeline.stage.name_of`` tells classes apart by name alone."""
    places: dict[str, list[str]] = defaultdict(list)
    for module, file in modules().items():
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_private_module_of_hydra_is_used() -> None:
    python = chain(*((ROOT / folder).rglob("*.py") for folder in ("memlab", "tests", "experiments", "slurm")))
    private = "hydra." + "_internal"
    assert not [str(file.relative_to(ROOT)) for file in python if private in file.read_text(encoding="utf-8")]
    assert not [str(file.relative_to(ROOT)) for file in (ROOT / "conf").rglob("*.yaml")
                if private in file.read_text(encoding="utf-8")]


def test_the_versions_for_gpus_are_all_pinned_and_those_of_constraints_txt_but_for_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    gpu, cpu = pinned("constraints-gpu.txt"), pinned("constraints.txt")
    needed = [*project["dependencies"], *project["optional-dependencies"]["gpu"]]
    assert {canonicalize_name(Requirement(line).name) for line in needed} <= {*gpu}
    assert {name for name in gpu.keys() & cpu.keys() if gpu[name] != cpu[name]} == {"torch"}
    assert {name for name in gpu if name.startswith("faiss")} == {"faiss-gpu-cuvs"}
    assert not [name for name in gpu if name.endswith("-cu12")]  # one CUDA


def test_pinned_versions_fit_the_requirements_and_extras_name_each_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: [Requirement(line) for line in lines] for name, lines in project["optional-dependencies"].items()}
    needed = [*map(Requirement, project["dependencies"]), *chain(*(extras[name] for name in extras if name != "serve"))]
    for pins in (pinned("constraints.txt"), pinned("constraints-gpu.txt")):
        assert [one for one in needed if (pin := pins.get(canonicalize_name(one.name)))
                and not one.specifier.contains(pin)] == []
    named = {one.name for one in [*needed, *extras["serve"]]}
    assert named >= {"torch", "transformers", "sentence-transformers", "faiss-gpu-cuvs", "FlagEmbedding", "vllm",
                     "numpy", "hydra-core", "wandb", "pytest"}
    assert {one.name for one in extras["gpu"]} == {"faiss-gpu-cuvs", "FlagEmbedding"}
    assert extras["serve"][0].specifier.contains(STEPS["gpu"][0][1].partition("==")[2])


WAYS_OUT = ("memlab.support.terminal", "memlab.support.console", "memlab.models.serving.inside.convert_gguf")
"""The helpers that clean what is printed, and a script that runs alone inside a server's container."""


def test_whatever_is_printed_is_cleaned() -> None:
    """No other module prints, makes a console of rich, or writes to the standard streams itself."""
    strays = []
    for module, file in modules().items():
        if module in WAYS_OUT:
            continue
        own = "print" in {alias.name for node in ast.walk(tree(file)) if isinstance(node, ast.ImportFrom)
                          and node.module == "memlab.support.terminal" for alias in node.names}
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ImportFrom) and node.module in ("rich", "rich.console") and {
                    alias.name for alias in node.names} & {"print", "Console"}:
                strays.append((module, node.lineno))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                    "builtins.print", "sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write"):
                strays.append((module, node.lineno))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and not own:
                strays.append((module, node.lineno))
    assert strays == []


FENCED_ELSEWHERE = {
    "memlab.stages.judge.official": "the benchmark's own script, word for word",
    "memlab.stages.systems.memorystack.stages": "with memlab.stages.judge.llm",
    "memlab.stages.read.reader": "memlab.stages.read.prompt encloses the history"}


def test_every_stage_that_asks_a_chat_model_fences_what_comes_from_data() -> None:
    asking = {module for module, file in modules().items() if room_of(module).startswith("stages") for node in
              ast.walk(tree(file)) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Prompt"}
    fencing = {module for module in asking if "memlab.pipeline.transcript" in imports(module)}
    assert asking - fencing - FENCED_ELSEWHERE.keys() == set()
    assert len(asking) >= 8
