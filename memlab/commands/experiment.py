"""The command of an experiment: ``memlab experiment NAME ...``.

An experiment whose code is not needed for a run is a plug-in in the folder ``experiments`` of a checkout of memlab:
``plugins=[NAME]`` adds its techniques and data, and its module ``__main__`` is this command. An installed package has
none.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from memlab.experiment.config import plugins
from memlab.support.errors import did_you_mean
from memlab.support.help_text import Parser
from memlab.support.terminal import print


def main(argv: Sequence[str] | None = None) -> int:
    """Run an experiment's command; return its exit status, or 2 if there is none of that name."""
    known = sorted(file.parent.name for file in plugins.EXPERIMENTS.glob("*/__main__.py"))
    parser = Parser(prog="memlab experiment", description=__doc__)
    parser.add_argument("name", help=", ".join(known) or plugins.NO_CHECKOUT)
    parser.add_argument("words", nargs=argparse.REMAINDER, help="of its command; --help describes them")
    options = parser.parse_args(argv)
    if options.name not in known:
        print(f"memlab experiment: error: there is no '{options.name}'; "
              f"{did_you_mean(options.name, known) if known else plugins.NO_CHECKOUT}", file=sys.stderr)
        return 2
    if faults := plugins.activate([options.name]):
        print(f"memlab experiment: error: {faults[0]}", file=sys.stderr)
        return 2
    return int(importlib.import_module(f"{options.name}.__main__").main(options.words))


if __name__ == "__main__":
    raise SystemExit(main())
