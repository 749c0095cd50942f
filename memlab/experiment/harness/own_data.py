"""The user's own data, which goes to a tracking server only on request."""

from __future__ import annotations

from omegaconf import OmegaConf, open_dict

from memlab.data.jsonl import FolderDataset
from memlab.experiment.config.compose import ArmConfigs
from memlab.experiment.config.instantiate import find_class

_NO_TRACKING = {"_target_": "memlab.experiment.track.record.NoTracking"}


def leave_untracked(configs: ArmConfigs) -> None:
    """Choose no tracking in all configurations if one is of a folder of the user's own and no override is about it."""
    if any(override.key_or_group.partition(".")[0] == "track" for override in configs.arms[0].overrides.values()):
        return
    targets = {str(OmegaConf.select(arm.config, "data._target_")) for arm in configs.arms}
    if any(isinstance(cls := find_class(target, "data", []), type) and issubclass(cls, FolderDataset)
           for target in targets):
        for arm in configs.arms:
            with open_dict(arm.config):
                arm.config.track = dict(_NO_TRACKING)
