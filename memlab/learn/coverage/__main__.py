"""Fit coverage on one benchmark to apply it to another: ``python -m memlab.learn.coverage file=FIT.json ...``.

The other arguments are those of ``memlab.run``: they configure the ranking that the model is fitted on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from memlab.errors import MemlabError
from memlab.harness.arm import load as load_data
from memlab.harness.sweep import read
from memlab.learn.coverage.model import save
from memlab.learn.coverage.stage import fit_tables
from memlab.learn.labels import EvidenceLevel
from memlab.runtime.memory_limit import OF_A_RUN, enough_memory
from memlab.runtime.terminal import print
from memlab.store import store_at


def main(words: Sequence[str]) -> int:
    """Fit on the ranking that the other arguments configure, save the fit, and return the exit status."""
    file = next((w.removeprefix("file=") for w in words if w.startswith("file=")), "")
    try:
        if not file:
            raise MemlabError("no file for the fit is given", fix="file=FIT.json")
        sweep = read([w for w in words if not w.startswith("file=")])
        arm, store = sweep.arms[0], sweep.settings.store
        with enough_memory(OF_A_RUN):
            tables = arm.pipeline.run(load_data(arm.dataset), store_at(store))
            level: EvidenceLevel = "turn" if tables["units"]["level"].eq("turn").any() else "session"
            save(fit_tables(tables, level), Path(file))
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2
    print(f"fitted on {tables['questions'].height:,} questions of {arm.dataset.name}, {level} level: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
