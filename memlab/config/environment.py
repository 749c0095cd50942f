"""The resolver ``oc.env``, whose values are remembered as secrets: what a configuration takes from the environment."""

from __future__ import annotations

import os

from omegaconf import OmegaConf
from omegaconf.resolvers import oc

from memlab.runtime.redaction import remember


def install() -> None:
    """Replace the resolver ``oc.env`` by one that returns the same values and remembers them."""
    OmegaConf.register_new_resolver("oc.env", _env, replace=True)


def _env(key: str, *default: str | None) -> str | None:
    remember([os.environ[key]] if key in os.environ else [])
    return oc.env(key, *default)
