"""Commands for benchmark files: ``memlab data list | fetch NAME | check PATH | show ID``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from memlab.data import benchmarks
from memlab.experiment.config.instantiate import make_dataset
from memlab.experiment.config.instantiate import options as choices_of
from memlab.support.clock import time_zone
from memlab.support.errors import MemlabError
from memlab.support.help_text import Parser
from memlab.support.machine import enough_memory
from memlab.support.paths import path_argument
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import safe_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 after a message about what is wrong."""
    words = as_flags(sys.argv[1:] if arguments is None else arguments,
                     {"data": "--data", "data.path": "--path", "data.timezone": "--timezone"})
    options = _parser().parse_args(words)
    try:
        with enough_memory("take a smaller file"):
            return int(options.run(options))
    except MemlabError as fault:
        print(fault, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="memlab data", description="Benchmark files.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("list", help="list the data sets, and which files are here")
    command.set_defaults(run=_list)
    command = commands.add_parser("fetch", help="download a benchmark's official files and verify them")
    command.add_argument("name", help=", ".join([*benchmarks.FILES, *benchmarks.FOLDERS]))
    command.add_argument("--base", help="address of the folder that holds the file, such as a mirror")
    command.set_defaults(run=_fetch)
    command = commands.add_parser("check", help="describe a file or folder and list its faults")
    command.add_argument("file", type=path_argument, nargs="?", metavar="PATH")
    command.add_argument("--path", type=path_argument, help="the same; data.path=PATH as well")
    command.add_argument("--data", metavar="NAME", help="is not needed: the format is recognised")
    command.add_argument("--timezone", default="UTC", metavar="NAME",
                         help="time zone of the days of your own data, where times have a UTC offset (default: UTC); "
                              "data.timezone=NAME as well")
    command.set_defaults(run=_check)
    command = commands.add_parser("show", help="print a question with its answer and evidence")
    command.add_argument("id", help="the benchmark's id of the question (LoCoMo: conv-26:3), or its number")
    command.add_argument("--data", default="locomo", metavar="NAME", help="dataset (default: locomo)")
    command.add_argument("--path", type=path_argument, help="its file, if it is not where fetch puts it")
    command.set_defaults(run=_show)
    return parser


def _list(options: argparse.Namespace) -> int:  # noqa: ARG001 - every command has this signature
    names = sorted({*choices_of("data"), *benchmarks.FILES, *benchmarks.FOLDERS})
    width = max(map(len, names))
    for name in names:
        if entry := benchmarks.FILES.get(name):
            size = _size(entry.size) if entry.size else "about 2.7 GB"
            place = benchmarks.data_folder() / entry.file
            state = f"here: {place}" if place.exists() else f"not here; memlab data fetch {name}"
            print(f"{name:<{width}}  {entry.licence}, {size}; {safe_line(state)}")
        elif several := benchmarks.FOLDERS.get(name):
            missing = several.missing(benchmarks.data_folder())
            state = f"{missing} not here; memlab data fetch {name}" if missing else "all here"
            print(f"{name:<{width}}  {several.licence}, {len(several.files)} files; {state}")
        elif parts := [other for other in benchmarks.FOLDERS if other.startswith(f"{name}_")]:
            print(f"{name:<{width}}  fetched by size: {', '.join(parts)}")
        else:
            print(f"{name:<{width}}  no file to fetch; memlab explain data/{name}")
    return 0


def _size(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


def _fetch(options: argparse.Namespace) -> int:
    from memlab.data.fetch import fetch

    print(f"verified: {safe_line(str(fetch(options.name, base=options.base)))}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from memlab.data.inspect import inspect

    path = options.file or options.path
    if path is None:
        raise MemlabError("no file or folder is named", fix="memlab data check PATH")
    time_zone(options.timezone, "--timezone")
    finding = inspect(path, options.timezone)
    print(f"{safe_line(path)}: {finding.benchmark}")
    for fact in finding.facts:
        print(f"  {safe_line(fact)}")
    for problem in finding.problems:
        print(f"  problem: {safe_line(problem)}")
    if not finding.problems:
        print("  no problem found")
    return 1 if finding.problems else 0


def _show(options: argparse.Namespace) -> int:
    from memlab.data.inspect import show

    fields = {} if options.path is None else {"path": options.path}
    print(show(make_dataset(options.data, **fields).load(), options.id))
    return 0


if __name__ == "__main__":
    sys.exit(main())
