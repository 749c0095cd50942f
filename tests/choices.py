"""memlab's choices, for tests: all of some slots, and the comments that describe them."""

from __future__ import annotations

from itertools import takewhile

from memlab.config.choices import own_choices
from memlab.config.instantiate import CONF


def choices_of(*rooms: str) -> list[str]:
    """All choices of slots, or of rooms of slots, but for ``none``: ``rank/select/gap``."""
    return sorted(name for name, choice in own_choices(CONF).items()
                  if name.startswith(tuple(f"{room}/" for room in rooms)) and choice.path != CONF / "config.yaml")


def names_of(slot: str) -> list[str]:
    """The names of the choices of one slot, but for ``none``."""
    return [name.rpartition("/")[2] for name in choices_of(slot)]


def comment(choice: str) -> str:
    """The comment above a choice, ``# ...`` on each line: at the head of its file, or above its entry."""
    file = CONF / f"{choice}.yaml"
    if file.is_file():
        return "\n".join(takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines()))
    slot, _, name = choice.rpartition("/")
    section = (CONF / "techniques.yaml").read_text(encoding="utf-8").partition(f"\n{slot}:\n")[2].partition("\n\n")[0]
    above = section.partition(f"\n  {name}:\n")[0].splitlines()[::-1]
    return "\n".join([line.strip() for line in takewhile(lambda line: line.startswith("  #"), above)][::-1])
