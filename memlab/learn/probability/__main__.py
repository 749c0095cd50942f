"""Fit probabilities of evidence to apply them elsewhere: ``python -m memlab.learn.probability file=FIT.json ...``.

The other arguments are those of ``memlab.run``: they configure the ranking that the model is fitted on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from memlab.errors import MemlabError
from memlab.harness.arm import load as load_data
from memlab.harness.sweep import read
from memlab.learn.probability.model import save
from memlab.learn.probability.stage import fit_tables
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
            save(fit_tables(tables), Path(file))
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2
    print(f"fitted on {tables['questions'].height:,} questions of {arm.dataset.name}: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
