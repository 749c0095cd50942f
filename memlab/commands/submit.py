"""Submit a sweep and return at once: ``memlab submit +exp=adaptive_k``, with the arguments of ``memlab run``.

Prints the ids of the jobs; ``memlab status`` shows their state. The launcher is ``hydra/launcher=slurm``
unless another profile is named. Exit status 0 submitted (or nothing to do), 1 SLURM accepted nothing, 2 a faulty
configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.markup import escape

from memlab.experiment.cluster.submit import launch
from memlab.experiment.config.overrides import MULTIRUN
from memlab.support.console import Console
from memlab.support.errors import Faults, MemlabError
from memlab.support.help_text import page
from memlab.support.terminal import HELP, print

LAUNCHER = "hydra/launcher="


def main(argv: Sequence[str] | None = None) -> int:
    """Submit the arms of a command line that are neither finished nor under way; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if any(argument in HELP for argument in arguments):
        print(page(__doc__))
        return 0
    plain = [argument for argument in arguments if argument not in MULTIRUN]
    if not any(argument.startswith(LAUNCHER) for argument in plain):
        plain.append(f"{LAUNCHER}slurm")
    out = Console(soft_wrap=True, highlight=False)
    try:
        return launch(plain, multirun=any(argument in MULTIRUN for argument in arguments), out=out, waits=False)
    except MemlabError as error:
        out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1


if __name__ == "__main__":
    raise SystemExit(main())
