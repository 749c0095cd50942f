"""memlab's choices, for tests: all of some slots, and the comments that describe them."""

from __future__ import annotations

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from memlab.experiment.config import choices, comments
from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.instantiate import CONF


def choices_of(*rooms: str) -> list[str]:
    """All choices of slots, or of rooms of slots, but for ``none``: ``rank/select/gap``."""
    return sorted(name for name, choice in own_choices(CONF).items()
                  if name.startswith(tuple(f"{room}/" for room in rooms)) and choice.path != CONF / "config.yaml")


def names_of(slot: str) -> list[str]:
    """The names of the choices of one slot, but for ``none``."""
    return [name.rpartition("/")[2] for name in choices_of(slot)]


def comment(choice: str) -> str:
    """The comment about a choice, in its file or table."""
    return "\n".join(comments.comment(choice, own_choices(CONF)[choice]))


def composed(name: str | None, *overrides: str) -> DictConfig:
    """What Hydra makes of a choice alone, or of no file, and these overrides; unresolved."""
    choices.register(CONF, choices.stamps())
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(name, [*overrides])
