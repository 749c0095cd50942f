"""The composition of chosen files by Hydra, as plain values. That of memlab's own files is kept on disk.

Hydra needs some .3 s of a core for each arm of a sweep. What it returns follows from the choices, the contents of the
files and the versions of the libraries; references (``${seed}``, ``${oc.env:NAME}``) are still written in it. Where
files of others are read, nothing is kept.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import hydra
import omegaconf
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf

from memlab.experiment.config import choices
from memlab.experiment.config.instantiate import CONF
from memlab.support.disk_cache import load_or_make
from memlab.support.paths import refusal_message

CONFIG = "config"
"""Name of the file of all defaults in ``conf``."""

VERSIONS = (hydra.__version__, omegaconf.__version__, yaml.__version__)


def composition(name: str | None, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Return what Hydra composes of a file of ``conf`` and the choices, with Hydra's own settings, unresolved.

    Raises:
        HydraException: The files cannot be composed.
    """
    if choices.more_choices() or any("$" in choice for choice in chosen):
        return _compose(name, chosen)
    folder = ""  # hydra.runtime.cwd names it
    with suppress(OSError):
        folder = os.getcwd()
    inputs = ["composition", VERSIONS, folder, name, [*chosen], choices.stamps()]
    return dict(load_or_make(inputs, lambda: _compose(name, chosen)))


def _compose(name: str | None, chosen: Sequence[str]) -> dict[str, Any]:
    choices.register(CONF, choices.stamps())
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        try:
            config = hydra.compose(name, [*chosen], return_hydra_config=True)
        except OSError as error:  # a name in a list of defaults that no file can have
            raise HydraException(f"the chosen files cannot be composed: {refusal_message(error)}") from error
        except (ValueError, TypeError, AssertionError) as error:  # a choice or a list of defaults of another form
            reason = str(error) or "a list of defaults has another form"
            raise HydraException(f"the chosen files cannot be composed: {reason}") from error
    plain: Any = OmegaConf.to_container(config, resolve=False, enum_to_str=True)
    return {str(key): value for key, value in plain.items()}
