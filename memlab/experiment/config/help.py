"""The page of ``memlab run --help``: examples, and one line for each slot; the rest is said by ``memlab explain``."""

from __future__ import annotations

from memlab.experiment.config.comments import slot_lines

PAGE = """usage: memlab run [-m] [SLOT=TECHNIQUE ...] [SLOT.SETTING=VALUE ...] [+exp=NAME]
  memlab run                                  one arm on embedded data
  memlab run rank/select=gap seed=1           another technique, another value
  memlab run -m rank.select.k=5,10,20         a sweep: one arm for each value
  memlab run +exp=adaptive_k plan=true        an experiment; plan=true: its cost
Exit status: 0 done, 1 an arm failed, 2 a faulty configuration, 130 interrupted.
{slots}
More: memlab explain, memlab explain SLOT, memlab explain SLOT/TECHNIQUE"""


def help_page() -> str:
    """Return the page: at most 50 lines of 80 characters."""
    return PAGE.format(slots="\n".join(f"{line.name:<17} {line.default:<9} {line.text}" for line in slot_lines()))
