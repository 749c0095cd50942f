"""The entry point: ``memlab run [+exp=NAME] [slot=technique] [slot.setting=value]``.

One arm, or the arms of a declared experiment, then the report. Finished arms are not run again; interrupted work
continues where it stopped. Exit status: 0 done, 1 an arm failed, 2 the configuration is faulty, 130 interrupted.
"""

from __future__ import annotations

import sys

from memlab.__main__ import announce

if __name__ == "__main__":
    announce("run", sys.argv[1:])


from rich.markup import escape

from memlab.experiment.config.help import help_page
from memlab.experiment.config.overrides import MULTIRUN
from memlab.support.console import Console
from memlab.support.errors import Faults, MemlabError
from memlab.support.terminal import HELP, clean_logs, print

_out = Console(soft_wrap=True, highlight=False)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    clean_logs()
    plain = [w for w in arguments if w not in (*MULTIRUN, *HELP)]
    multirun = any(w in MULTIRUN for w in arguments)
    try:
        if any(w in HELP for w in arguments):
            print(help_page())
            return 0
        # imports over a second of libraries, which the help page does not need
        from memlab.experiment.cluster.submit import launch

        return launch(plain, multirun, _out)
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; finished work is kept: run the same command again to continue")
        return 130


if __name__ == "__main__":
    sys.exit(main())
