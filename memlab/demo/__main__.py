"""A demonstration on embedded data: ``python -m memlab.demo [--no-open] [slot=technique] [slot.setting=value]``.

Runs the experiment ``demo``, ``best`` against five published systems, asks each of them one question, and opens the
report in a browser unless ``--no-open`` is given. Words are those of ``memlab.run``.

Exit status: 0 done, 1 failed, 2 the configuration is faulty, 130 interrupted.
"""

from __future__ import annotations

import sys

from memlab.__main__ import announce

if __name__ == "__main__":
    announce("demo", sys.argv[1:])

import os
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from memlab.cluster.submit import launch
from memlab.config.overrides import HELP
from memlab.demo.question import CORPUS, QUESTION, FirstResult, answers, print_answers
from memlab.errors import Faults, MemlabError
from memlab.harness.sweep import read
from memlab.runtime.machine import one_interrupt
from memlab.runtime.terminal import Console, print

EXPERIMENT = "+exp=demo"

_out = Console(soft_wrap=True, highlight=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if any(word in HELP for word in words):
        print((__doc__ or "").strip())
        return 0
    settings = [word for word in words if word != "--no-open"]
    try:
        with one_interrupt():
            status = launch([EXPERIMENT, *settings], False, _out)
            if status:
                return status
            sweep = read([EXPERIMENT, *settings])
            _print_question(list(answers(sweep)))
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; finished work is kept: run the same command again to continue")
        return 130
    report = sweep.arms[0].folder().parent / "report.html"
    _out.print(f"\nreport: {escape(str(report))}")
    if "--no-open" not in words and has_display():
        webbrowser.open(Path(report).resolve().as_uri())
    return 0


def _print_question(rows: list[FirstResult]) -> None:
    if rows:
        _out.print(f'\n[bold]"{QUESTION}"[/bold], asked of {CORPUS}: what each system shows first, and why')
        print_answers(iter(rows), _out)
        _out.print(f'\nask it yourself: memlab ask system=best corpus={CORPUS} "{QUESTION}"')


def has_display() -> bool:
    """Return whether somebody sits at a screen: output to a terminal, and on Linux a display."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    raise SystemExit(main())
