"""Plan of a server: model, names, device and address, as the command line and the machine determine them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from memlab.errors import Faults
from memlab.runtime.cores import usable_cores
from memlab.runtime.home import bundled_encoder
from memlab.serving import bundled, command, environment, node, records
from memlab.serving.environment import Device
from memlab.serving.settings import Settings, names, settings

AUTO = 0
"""The value of ``--data-parallel auto``."""

_OVERRIDES = ("revision", "runner", "dtype", "max_len", "tensor_parallel", "data_parallel", "gpu_memory", "kv_cache")


@dataclass(frozen=True)
class Plan:
    """Everything that a server is started with, but its port and its key.

    ``name`` is the user's name of the model, ``names`` are those that requests may use, the usual one first; ``gpus``
    is the memory of each GPU in MiB, ``address`` where the server listens and is asked.
    """

    name: str
    settings: Settings
    names: tuple[str, ...]
    python: Path
    device: Device
    gpus: tuple[int, ...]
    threads: int
    extra: tuple[str, ...] = ()
    address: node.Address = node.Address()

    def line(self, port: int) -> list[str]:
        """Return the command line at a port."""
        return command.build(self.settings, self.names, self.python, port, self.device, self.extra,
                             self.address.listens)

    def variables(self) -> dict[str, str]:
        """Return the environment variables of this plan, without the key."""
        return command.variables(self.settings, self.device, self.threads)

    def record(self, port: int) -> tuple[str, ...]:
        """Return variables and command line as one command, to be recorded and shown."""
        return *(f"{name}={value}" for name, value in self.variables().items()), *self.line(port)


def make_plan(given: argparse.Namespace, env: Path, extra: Sequence[str], echo: Callable[[str], None]) -> Plan:
    """Return the plan for parsed options; faults are raised in the order in which a user can mend them."""
    command.check_extra(extra)
    chosen = settings(given.model)
    python = environment.interpreter(env)
    gpus = environment.gpus()
    device = command.choose_device(given.device, environment.build_of(env), gpus)
    if device == "cpu":
        chosen = command.for_cpu(chosen)
    overrides = {name: value for name in _OVERRIDES if (value := getattr(given, name)) is not None}
    if given.data_parallel == AUTO:
        del overrides["data_parallel"]
    try:
        chosen = replace(chosen, **overrides)
    except ValidationError as error:
        raise Faults(f"--{str(fault['loc'][0]).replace('_', '-')}: {fault['msg']}"
                     for fault in error.errors()) from error
    if given.data_parallel == AUTO:
        chosen = command.for_gpus(chosen, gpus if device == "gpu" else ())
    name, served = str(given.model), [chosen.model]
    if chosen.model == bundled.embedded_folder().name:
        served.append("embedded")
        chosen = replace(chosen, model=str(bundled.ensure_embedded(env, echo)))
    elif chosen.model == "minilm":
        chosen = replace(chosen, model=str(bundled_encoder()))
    elif command.is_folder(chosen.model):
        name = records.file_name(Path(chosen.model).name)
        served = [name]
    elif given.model in names():
        served.insert(0, name)
    return Plan(name, chosen, tuple(served), python, device, tuple(gpus), given.threads or usable_cores(),
                tuple(extra), node.address(given.host))
