"""The choice ``none`` of every slot that may be empty, registered with Hydra instead of one file per slot."""

from __future__ import annotations

from hydra.core.config_store import ConfigStore

from memlab.slots import SLOTS
from memlab.stage import Nothing

EMPTY = {slot.config.replace(".", "/"): slot.empty for slot in SLOTS if slot.optional}
"""Configuration group -> tables that its empty stage writes."""

for _group, _writes in EMPTY.items():  # no empty list: an arm that replaces ``none`` by a stage must inherit no setting
    ConfigStore.instance().store(group=_group, name="none", node={
        "_target_": f"{Nothing.__module__}.{Nothing.__name__}", **({"writes": list(_writes)} if _writes else {})})
