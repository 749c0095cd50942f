"""Hydra's composition of chosen files, with the defaults of every class; a sweep reads each file once.

Hydra reads all files again for each arm, and lists all choices again for each of them in case a list of defaults
refers to one (``- db: ${choice}``). Here arms share what was read, and choices are listed where one is referred to:
this takes two thirds off the time of a sweep's composition.
"""

from __future__ import annotations

import copy
from functools import cache, lru_cache
from typing import Any

import hydra
from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository, IConfigRepository
from hydra.core.default_element import InputDefault, ResultDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from memlab.config.choices import ARMS, FileStamp
from memlab.config.instantiate import CONF, with_defaults
from memlab.runtime.paths import refusal_message

CONFIG = "config"
"""Name of the file of all defaults in ``conf``."""

_list_choices = defaults_list._create_interpolation_map


def _choices_referred_to(overrides: defaults_list.Overrides, defaults: list[InputDefault],
                         self_added: bool) -> DictConfig:
    """Return the choices so far, of which Hydra takes those that a list of defaults refers to."""
    return _list_choices(overrides, defaults, self_added) if any(
        not one.is_self() and one.is_interpolation() for one in defaults) else OmegaConf.create()


defaults_list._create_interpolation_map = _choices_referred_to


class _Loader(ConfigLoaderImpl):
    """Hydra's loader, which keeps the files that it has read."""

    _files: CachingConfigRepository | None = None

    def _parse_overrides_and_create_caching_repo(self, config_name: str | None, overrides: list[str]
                                                 ) -> tuple[list[Override], CachingConfigRepository]:
        if self._files is None:
            parsed, self._files = super()._parse_overrides_and_create_caching_repo(config_name, overrides)
            return parsed, self._files
        return OverridesParser.create().parse_overrides(overrides=overrides), self._files

    def _load_single_config(self, default: ResultDefault, repo: IConfigRepository) -> ConfigResult:
        loaded = super()._load_single_config(default, repo)
        if loaded is repo.load_config(str(default.config_path)):  # Hydra merges others into it
            loaded = copy.copy(loaded)
            loaded.config = copy.deepcopy(loaded.config)
        return loaded


@lru_cache(maxsize=1)
def _loader(search_path: tuple[str, ...], stamps: tuple[FileStamp, ...]) -> _Loader:  # noqa: ARG001  (the key)
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        return _Loader(GlobalHydra.instance().config_loader().get_search_path())


@cache
def hydra_alone() -> dict[str, Any]:
    """Return Hydra's own settings (plain values) as they are without files and arguments."""
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        config = hydra.compose(None, return_hydra_config=True)
    config.hydra.job.config_name = CONFIG
    plain: Any = OmegaConf.to_container(config.hydra, resolve=False)
    return {str(name): value for name, value in plain.items()}


@lru_cache(maxsize=64)
def compose_files(search_path: tuple[str, ...], chosen: tuple[str, ...], stamps: tuple[FileStamp, ...]) -> DictConfig:
    """Return the files of these stamps as Hydra composes them, with the defaults of every class.

    ``search_path`` and ``chosen`` are overrides: where Hydra looks beside memlab's files, and what is chosen. Arms of a
    sweep share the result, and command lines of one process do while no file changes.

    Raises:
        HydraException: The chosen files cannot be composed.
    """
    try:
        config = _loader(search_path, stamps).load_configuration(
            CONFIG, [*search_path, *chosen], RunMode.RUN, from_shell=False)
    except OSError as error:  # a name in a list of defaults that no file can have
        raise HydraException(f"the chosen files cannot be composed: {refusal_message(error)}") from error
    except (ValueError, TypeError, AssertionError) as error:  # a choice or a list of defaults of another form
        reason = str(error) or "a list of defaults has another form"
        raise HydraException(f"the chosen files cannot be composed: {reason}") from error
    plain: Any = OmegaConf.to_container(config, resolve=False)
    with open_dict(config):
        if ARMS in plain:  # of the experiment; each is a choice
            del config[ARMS], plain[ARMS]
        for key, node in plain.items():
            if key != "hydra" and isinstance(node, dict):
                config[key] = with_defaults(node)
        config.hydra.job.override_dirname = ""  # Hydra's own, of the choices
        config.hydra.launcher = with_defaults(plain["hydra"]["launcher"])
    return config
