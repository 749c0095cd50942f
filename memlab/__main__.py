"""The command ``memlab``; its subcommands are modules of ``memlab/commands``.

Modules are imported when their command runs, so that help and version cost no import of torch, polars or Hydra.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from memlab import __version__
from memlab.support.errors import did_you_mean
from memlab.support.pipe import flushed_output
from memlab.support.terminal import HELP, print
from memlab.support.uncaught import INTERRUPTED

COMMANDS = {
    "demo": ("memlab.commands.demo", "best against five published systems on embedded data, in a minute"),
    "run": ("memlab.run", "run an arm, a sweep or a declared experiment, and report it"),
    "explain": ("memlab.commands.explain", "say what each slot, technique and setting of a run is"),
    "report": ("memlab.commands.report", "build the report of finished runs again"),
    "import": ("memlab.commands.import_chats", "import a chat export into a folder that data=custom reads"),
    "questions": ("memlab.commands.questions", "propose questions about your own sessions, and mark their evidence"),
    "data": ("memlab.commands.data", "list, fetch, check and show benchmarks and your own data"),
    "ask": ("memlab.commands.ask", "one question in the terminal: ranking, signals, context, answer"),
    "judge": ("memlab.commands.judge", "score answers of your own system"),
    "train": ("memlab.commands.train", "train a reranker, an encoder or a ranker on questions with evidence"),
    "serve": ("memlab.commands.serve", "start, list and stop model servers"),
    "submit": ("memlab.commands.submit", "submit a sweep to a cluster and return at once"),
    "status": ("memlab.commands.status", "show the state of submitted sweeps"),
    "store": ("memlab.commands.store", "inspect and maintain stored vectors, scores and replies"),
    "mcp": ("memlab.memory.agent.mcp", "serve a live memory to an agent: add, search, history, forget as tools"),
    "track": ("memlab.commands.track", "publish finished runs to W&B"),
    "score": ("memlab.commands.score", "metrics, tests and a report for rankings of other software"),
    "fuse": ("memlab.commands.fuse", "fuse ranking files into a new one, by the rules of rank/score"),
    "peers": ("memlab.commands.peers", "run published memory packages on your data, and score what they find"),
    "experiment": ("memlab.commands.experiment", "the command of an experiment, in a checkout of memlab"),
    "doctor": ("memlab.commands.doctor", "check what this machine can run, and what is missing"),
    "completion": ("memlab.commands.completion", "print a script for TAB in bash or zsh"),
}
"""Name of a subcommand -> module with its ``main``, and what it does in one line."""

SLOW = ("demo", "run", "ask", "submit", "report", "judge", "score", "peers")
"""Commands that import for more than a second: they print a line first."""

USAGE = """usage: memlab COMMAND [key=value ...] [--flag ...]

memlab: what makes retrieval for long-term conversational memory work

{commands}

  memlab COMMAND --help   describe a command
  memlab --version        print the version

key=value sets configuration (rank.select.k=5, data=locomo, +exp=adaptive_k); --flag sets a command's own options.
python -m memlab COMMAND does the same as memlab COMMAND."""


@flushed_output()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status, or 2 if there is none of that name."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if not arguments or arguments[0] in HELP:
        print(usage())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"memlab {__version__}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"memlab: {unknown_command(name)}", file=sys.stderr)
        return 2
    if "--version" in rest:
        return main(["--version"])
    announce(name, rest)
    try:
        module = importlib.import_module(COMMANDS[name][0])
        return int(module.main(rest))
    except KeyboardInterrupt:
        print("\ninterrupted; finished work is kept", file=sys.stderr)
        return INTERRUPTED


def usage() -> str:
    """Return the page of ``memlab --help``."""
    width = max(map(len, COMMANDS))
    return USAGE.format(commands="\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()))


def unknown_command(argument: str) -> str:
    """Return the error message for an argument that is no subcommand.

    >>> unknown_command("rnu")[:50]
    "there is no command 'rnu'; did you mean 'run'? (kn"
    >>> unknown_command("+exp=adaptive_k")
    "'+exp=adaptive_k' is a setting and no command; write memlab run +exp=adaptive_k"
    """
    if "=" in argument:
        return f"'{argument}' is a setting and no command; write memlab run {argument}"
    return f"there is no command '{argument}'; {did_you_mean(argument, COMMANDS)}"


def announce(name: str, arguments: Sequence[str]) -> None:
    """Print one line on a terminal before a command imports its libraries."""
    if name in SLOW and sys.stderr.isatty() and set(HELP).isdisjoint(arguments):
        print(f"memlab {__version__} {name} is starting", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
