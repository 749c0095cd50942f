"""Fit probabilities of evidence to apply them elsewhere: ``python -m memlab.learn.probability file=FIT.json ...``.

The other arguments are those of ``memlab.run``: they configure the ranking that the model is fitted on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from memlab.learn.command import fit_command
from memlab.learn.probability.stage import fit_tables


def main(words: Sequence[str]) -> int:
    """Fit on the ranking that the words configure, save the fit, and return the exit status."""
    return fit_command(words, fit_tables)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
