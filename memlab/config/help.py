"""The help page of ``memlab run``: the command, all slots, and the settings of what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf

from memlab.config.compose import compose
from memlab.config.instantiate import options
from memlab.config.overrides import groups
from memlab.config.plugins import GROUP, installed
from memlab.config.reasons import lines_with_reasons
from memlab.errors import Faults
from memlab.runtime.garbage import no_collection

USAGE = """memlab: what makes retrieval for long-term conversational memory work

  memlab run                      one arm on embedded data, all defaults (also: python -m memlab.run)
  memlab run rank/select=gap      another technique in one slot
  memlab run rank.select.k=5      another value
  memlab run -m rank.select.k=5,10,20            a sweep: one arm per value
  memlab run +exp=adaptive_k      a declared experiment: arms, contrasts, report
  memlab run ... plan=true        what would run, what is cached, what it costs
  memlab run ... hydra/launcher=local|slurm      in processes, or as jobs

Exit status: 0 done, 1 an arm failed, 2 the configuration is faulty, 130 interrupted.

== Slots, and the techniques for each (slot=technique) ==

{slots}

== Plug-ins of installed packages (plugins=[NAME]; further files: conf_dir=FOLDER) ==

{plugins}

== Settings of what is chosen by these words (slot.setting=value) ==

{settings}"""


@no_collection()
def help_page(words: Sequence[str], multirun: bool = False) -> str:
    """Describe the command, all slots, and the settings of what these words choose; raise Faults if they are bad."""
    configs, faults = compose(words, multirun)
    if configs is None or faults:
        raise Faults(faults)
    slots = (f"{slot}: {', '.join(options(slot))}" for slot in sorted(groups()) if not slot.startswith("hydra"))
    settings: Any = OmegaConf.to_container(configs.base)
    del settings["hydra"]
    offers = ", ".join(sorted(installed())) or f"none (no installed package has an entry point in {GROUP})"
    return USAGE.format(slots="\n".join(slots), plugins=offers, settings="\n".join(lines_with_reasons(settings)))
