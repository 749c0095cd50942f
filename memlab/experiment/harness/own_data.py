"""The user's own data, which goes to a tracking server only on request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omegaconf import DictConfig, OmegaConf, open_dict

from memlab.data.jsonl import FolderDataset
from memlab.experiment.config.instantiate import find_class
from memlab.experiment.config.overrides import parse

_NO_TRACKING = {"_target_": "memlab.experiment.track.record.NoTracking"}


def leave_untracked(configs: Sequence[DictConfig], overrides: Iterable[str]) -> None:
    """Choose no tracking in all configurations if one is of a folder of the user's own and no override is about it."""
    if any(parse(override).key_or_group.partition(".")[0] == "track" for override in overrides):
        return
    targets = {str(OmegaConf.select(config, "data._target_")) for config in configs}
    if any(isinstance(cls := find_class(target, "data", []), type) and issubclass(cls, FolderDataset)
           for target in targets):
        for config in configs:
            with open_dict(config):
                config.track = dict(_NO_TRACKING)
