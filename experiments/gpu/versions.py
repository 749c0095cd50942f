"""Versions of the machine, its driver, and the packages that memlab uses."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess

from memlab.doctor.gpu import describe
from memlab.models.local.backend import resolve


def main() -> None:
    """Print the versions as JSON."""
    found = describe(resolve("auto", "auto", "auto").devices[0])
    if smi := shutil.which("nvidia-smi"):
        query = [smi, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        found["driver"] = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    try:
        import faiss

        found["faiss"] = {"version": faiss.__version__, "gpus": getattr(faiss, "get_num_gpus", lambda: 0)()}
    except ImportError as error:
        found["faiss"] = str(error)
    print(json.dumps({**found, "machine": platform.platform()}, indent=1))


if __name__ == "__main__":
    main()
