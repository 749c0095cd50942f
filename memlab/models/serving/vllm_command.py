"""The command line of vLLM, with model, device, address and variables, from the options and the machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from memlab.models.serving import environment
from memlab.models.serving.environment import Device
from memlab.models.serving.servers import Address, address_of, file_name
from memlab.models.serving.settings import Settings, served_names, settings
from memlab.support.errors import Faults, MemlabError
from memlab.support.machine import usable_cores
from memlab.support.paths import bundled_encoder

DeviceChoice = Literal["auto", "cpu", "gpu"]

CPU_WINDOW = 8192
"""Tokens; a CPU reads longer prompts for minutes, and the attention cache does not hold them."""

MODULE = "vllm.entrypoints.launchers.api_server.entry"
"""What starts a server in both builds; the ``vllm`` command does not recognise the distribution of the CPU build."""

INSIDE = Path(__file__).with_name("inside")
"""The code that the server's own Python imports besides its packages."""

AUTO = -1
"""The value of ``--data-parallel auto``."""

_OVERRIDES = ("revision", "runner", "dtype", "max_len", "tensor_parallel", "data_parallel", "gpu_memory", "kv_cache",
              "quantization")
_RECORDED = ("--host", "--port", "--api-key")  # set and recorded by memlab
_SMALLER = "--quantization fp8_per_tensor (half of 16-bit weights), or a smaller model (memlab serve --help lists them)"
_OWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # of memlab's environment, wrong for another


@dataclass(frozen=True)
class Plan:
    """Everything that a server is started with, except its port and its key.

    ``name`` is the user's name of the model; ``names`` are those that requests may use, the preferred one first;
    ``gpus`` is the memory of each GPU in MiB.
    """

    name: str
    settings: Settings
    names: tuple[str, ...]
    python: Path
    device: Device
    gpus: tuple[int, ...]
    threads: int
    extra: tuple[str, ...] = ()
    address: Address = Address()

    def line(self, port: int) -> list[str]:
        """Return the command line for a port, without the key: any user of a machine can read command lines."""
        settings, cpu = self.settings, self.device == "cpu"
        window = "auto" if cpu and settings.runner == "generate" else None  # as much as the attention cache holds
        values: dict[str, object] = {
            "--model": settings.model, "--host": self.address.listen, "--port": port, "--runner": settings.runner,
            "--middleware": "key_guard.KeyGuard", "--uvicorn-log-level": "warning",  # a line per request fills the log
            "--dtype": "float32" if cpu and settings.dtype == "auto" else settings.dtype,
            "--gpu-memory-utilization": None if cpu else settings.share(self.gpus),
            "--max-model-len": settings.max_len or window, "--quantization": settings.quantization,
            "--tensor-parallel-size": settings.tensor_parallel if settings.tensor_parallel > 1 else None,
            "--data-parallel-size": settings.data_parallel if settings.data_parallel > 1 else None,
            "--revision": None if is_folder(settings.model) else settings.revision}
        given = [word for name, value in values.items() if value for word in (name, str(value))]
        given += ["--enforce-eager"] * cpu  # compiling takes minutes and does not help on a CPU
        return [str(self.python), "-m", MODULE, *given, "--served-model-name", *self.names, *settings.options,
                *self.extra]

    def variables(self) -> dict[str, str]:
        """Return the environment variables for the model and the device; the key is not among them."""
        result = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "TOKENIZERS_PARALLELISM": "false",
                  "PYTHONPATH": str(INSIDE)}
        if is_folder(self.settings.model):
            result["HF_HUB_OFFLINE"] = "1"
        if self.device == "cpu":
            # bound threads would use memlab's cores; the number is set, since an outer value may be meant for memlab
            result |= {"VLLM_CPU_KVCACHE_SPACE": str(self.settings.kv_cache), "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                       "OMP_NUM_THREADS": str(self.threads)}
        return result

    def record(self, port: int) -> tuple[str, ...]:
        """Return variables and command line as one command, to be recorded and shown."""
        return *(f"{name}={value}" for name, value in self.variables().items()), *self.line(port)


def make_plan(args: argparse.Namespace, env: Path, extra: Sequence[str], echo: Callable[[str], None]) -> Plan:
    """Return the plan for parsed options; raise errors in the order in which a user can fix them."""
    check_extra(extra)
    model_settings = settings(args.model)
    python = environment.interpreter(env)
    gpus = environment.gpus()
    device = choose_device(args.device, environment.build_of(env), gpus)
    if device == "cpu" and model_settings.max_len:
        model_settings = replace(model_settings, max_len=min(model_settings.max_len, CPU_WINDOW))
    overrides = {name: value for name in _OVERRIDES if (value := getattr(args, name)) is not None}
    if args.data_parallel == AUTO:
        del overrides["data_parallel"]
    try:
        model_settings = replace(model_settings, **overrides)
    except ValidationError as error:
        raise Faults(f"--{str(fault['loc'][0]).replace('_', '-')}: {fault['msg']}"
                     for fault in error.errors()) from error
    if device == "cpu" and model_settings.quantization:
        raise MemlabError(f"--quantization {model_settings.quantization} needs a GPU", fix="leave it out on a CPU")
    if args.data_parallel == AUTO:
        model_settings = for_gpus(model_settings, gpus if device == "gpu" else ())
    name, names = str(args.model), [model_settings.model]
    if model_settings.model == environment.embedded_folder().name:
        names.append("embedded")
        model_settings = replace(model_settings, model=str(environment.ensure_embedded(env, echo)))
    elif model_settings.model == "minilm":
        model_settings = replace(model_settings, model=str(bundled_encoder()))
    elif is_folder(model_settings.model):
        name = file_name(Path(model_settings.model).name)
        names = [name]
    elif args.model in served_names():
        names.insert(0, name)
    return Plan(name, model_settings, tuple(names), python, device, tuple(gpus), usable_cores(),
                tuple(extra), address_of(args.host))


def choose_device(choice: DeviceChoice, build: Device | None, gpus: Sequence[int]) -> Device:
    """Resolve ``--device auto``: the device that the environment was built for, else a GPU if there is one.

    >>> choose_device("auto", "cpu", [81559]), choose_device("auto", None, [81559]), choose_device("auto", None, [])
    ('cpu', 'gpu', 'cpu')
    """
    device = choice if choice != "auto" else build or ("gpu" if gpus else "cpu")
    if build and device != build:
        raise MemlabError(f"--device {device}, but the serving environment holds vLLM's {build} build",
                          fix=f"memlab serve --create-env {device} --env ANOTHER_FOLDER")
    if device == "gpu" and not gpus:
        raise MemlabError("vLLM's GPU build needs a GPU, and this machine shows none (nvidia-smi)",
                          fix="memlab serve --create-env cpu --env ANOTHER_FOLDER")
    return device


def for_gpus(settings: Settings, gpus: Sequence[int]) -> Settings:
    """Resolve ``--data-parallel auto``: as many copies as the GPUs hold.

    >>> for_gpus(Settings(model="m", tensor_parallel=2), [81559] * 5).data_parallel
    2
    """
    return replace(settings, data_parallel=max(1, len(gpus) // settings.tensor_parallel))


def check_extra(extra: Sequence[str]) -> None:
    """Raise MemlabError if an option for vLLM sets what memlab records."""
    for word in extra:
        if word.partition("=")[0] in _RECORDED:
            raise MemlabError(f"{word} is not for vLLM's own options",
                              fix="--host and --port stand before the `--`; the key is generated")


def outer_variables(outer: Mapping[str, str]) -> dict[str, str]:
    """Return the outer environment variables without those of memlab's own environment."""
    return {name: value for name, value in outer.items() if name not in _OWN}


def check_room(settings: Settings, gpus: Sequence[int]) -> None:
    """Raise MemlabError if the weights cannot fit on these GPUs (MiB each), before minutes of loading."""
    wanted = settings.tensor_parallel * settings.data_parallel
    if len(gpus) < wanted:
        fewer = f"--tensor-parallel {len(gpus)}" if settings.data_parallel == 1 else "--data-parallel auto"
        raise MemlabError(f"this model is set to share {wanted} GPUs; this machine shows {len(gpus)}",
                          fix=f"{fewer}, or {_SMALLER}")
    room = sum(sorted(gpus)[-settings.tensor_parallel:]) * 2**20 / 1e9 * settings.share(gpus)
    if settings.loaded_gb() > room:
        raise MemlabError(f"the weights take {settings.loaded_gb():.1f} GB; {settings.tensor_parallel} GPU(s) give "
                          f"{room:.1f} GB", fix=f"--tensor-parallel N, --gpu-memory SHARE, or {_SMALLER}")


def is_folder(model: str) -> bool:
    """Return whether a model is a local folder rather than a name on the hub."""
    return Path(model).is_dir()
