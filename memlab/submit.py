"""Submit a sweep and return at once: ``memlab submit +exp=adaptive_k``, with the arguments of ``memlab run``.

Prints the ids of the jobs; ``memlab status`` shows their state. The launcher is ``hydra/launcher=slurm``
unless another profile is named. Exit status 0 submitted (or nothing to do), 1 SLURM accepted nothing, 2 a faulty
configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.markup import escape

from memlab.cluster.slurm import Slurm
from memlab.cluster.submit import submit
from memlab.config.overrides import HELP, MULTIRUN
from memlab.errors import Faults, MemlabError
from memlab.harness.plan import print_left_out
from memlab.harness.sweep import read
from memlab.runtime.console import Console
from memlab.runtime.help_text import page
from memlab.runtime.terminal import print

LAUNCHER = "hydra/launcher="


def main(argv: Sequence[str] | None = None) -> int:
    """Submit the arms of a command line that are neither finished nor under way; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if any(argument in HELP for argument in arguments):
        print(page(__doc__))
        return 0
    out = Console(soft_wrap=True, highlight=False)
    multirun = any(argument in MULTIRUN for argument in arguments)
    arguments = [argument for argument in arguments if argument not in MULTIRUN]
    if not any(argument.startswith(LAUNCHER) for argument in arguments):
        arguments.append(f"{LAUNCHER}slurm")
    try:
        sweep = read(arguments, multirun=multirun)
        finished = sum(arm.is_finished() for arm in sweep.arms)
        if not isinstance(sweep.launcher, Slurm):
            raise MemlabError("this launcher runs the arms in the calling shell", where="hydra/launcher",
                              fix="memlab run with the same arguments, or a SLURM profile")
        print_left_out(sweep, out)
        snapshot = submit(sweep.launcher, sweep.arms, arguments, sweep.settings.store, sweep.settings.shards, out)
    except MemlabError as error:
        out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    if finished:
        out.print(f"{finished} of {len(sweep.arms)} arms are finished, before this sweep or in another")
    if snapshot is None:
        out.print("nothing to submit: every arm is finished")
    else:
        out.print(f"status: memlab status --out {snapshot.metadata()['out']}", markup=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
