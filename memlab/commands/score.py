"""Metrics, tests and a report for rankings made elsewhere: ``memlab score RUN... data=locomo``.

Each run becomes an arm of ``runs/score/DATA``; ``--experiment systems`` puts it beside the arms of that experiment, so
that the report compares both. Words of the form ``key=value`` are memlab's configuration: the data, the selection
(``rank/select=budget rank.select.tokens=1000``), and, with ``read/answer=reader``, a reader. The first file of the
command is what all others are compared with, unless contrasts are declared; beside arms, it is their first.

Formats: TREC runs, MTEB's predictions, LongMemEval's retrieval logs, and JSON lines
``{"question_id": "q1", "ranked": ["s1", "s2"]}``. Documents are the benchmark's own names of turns or sessions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from memlab.evaluate.score.arm import About, ForeignRun, foreign_arm, run_name
from memlab.evaluate.score.runs import Run, read_run
from memlab.experiment.harness.arm import Arm, safe
from memlab.experiment.harness.sweep import read
from memlab.pipeline.slots import LAST_RANKED, SLOTS
from memlab.report.build import build, reported_runs
from memlab.report.console import print_report
from memlab.store import store_at
from memlab.support.errors import Faults, MemlabError
from memlab.support.foreign import read_json
from memlab.support.help_text import Parser
from memlab.support.machine import enough_memory
from memlab.support.terminal import print
from memlab.support.text.display import plural, safe_line, safe_text

STILL_READ = ("extract", "classify")
"""Slots before the selection that a foreign run has: the reader's graph, and classes of questions."""

NOT_RUN = ("plan", "shards", "name", "ablate", "hydra", *(
    slot.config for slot in SLOTS[:[slot.name for slot in SLOTS].index(LAST_RANKED)] if slot.name not in STILL_READ))
"""Places of the configuration that a ranking made elsewhere leaves unread."""

SCORE = "score"
"""Folder below runs/ of foreign runs alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Score the runs; return 0, 1 if a run cannot be read, 2 if the configuration is faulty."""
    parser = Parser(prog="memlab score", description=__doc__)
    parser.add_argument("words", nargs="+", metavar="RUN | key=value", help="ranking files, and memlab's configuration")
    parser.add_argument("--experiment", default=SCORE, help=f"folder under runs/ (default {SCORE})")
    parser.add_argument("--lint", action="store_true", help="only say what is wrong with the runs; write nothing")
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--ascending", dest="order", action="store_const", const="ascending", default="score",
                       help="scores are distances: the lowest is the best")
    order.add_argument("--by-rank", dest="order", action="store_const", const="rank",
                       help="the rank column of TREC runs decides, not the scores")
    options, unknown = parser.parse_known_intermixed_args(argv)
    if unknown:
        parser.error(f"{safe_line(unknown[0])}: there is no such option; settings have no dashes: "
                     "data=NAME data.path=FILE")
    settings = [word for word in options.words if "=" in word and not Path(word).exists()]
    files = [Path(word) for word in options.words if word not in settings]
    if not files:
        parser.error("name at least one ranking file")
    if safe(options.experiment) != options.experiment or options.experiment.strip(".") == "":
        parser.error(f"--experiment {safe_line(options.experiment)}: expected the name of a folder under runs/")
    try:
        settings += [] if any(word.startswith("track=") for word in settings) else ["track=none"]
        reader = partial(read_run, order=options.order)
        return score(files, reader, settings, options.experiment, options.lint)
    except MemlabError as error:
        print(f"memlab: {safe_text(error)}", file=sys.stderr)
        return 2 if isinstance(error, Faults) else 1


@enough_memory("score fewer runs at once, or fewer questions (data.limit=100)")
def score(files: Sequence[Path], reader: Callable[[Path], Run], settings: Sequence[str], experiment: str,
          lint: bool = False, about: Mapping[str, About] | None = None, failed: Mapping[str, str] | None = None) -> int:
    """Score the runs of files and build the report; return 0.

    ``about`` has what stands beside the row of a run's name, ``failed`` the rows without a ranking, and why.
    """
    about, failed, sweep = about or {}, failed or {}, read(settings, without=NOT_RUN)
    base = replace(sweep.arms[0], experiment=experiment)
    store = store_at(sweep.settings.store)
    names = [run_name(path) for path in files]
    twice = {name for name in names if names.count(name) > 1}
    folder = base.arms_folder()
    scored: list[str] = []
    earlier = reported_runs(folder)
    for path, name in zip(files, names):
        own = path.as_posix() if name in twice else name
        run = reader(path)
        arm, ranked, faults = foreign_arm(base, own, run, store, about.get(own, About()))
        print(f"{safe_line(own)}: {run.format}, {run.rows.height:,} rows of {ranked.tables['units']['level'][0]}s, "
              f"{plural(ranked.tables['ranking']['question'].n_unique(), 'question')}")
        for fault in faults:
            print(f"  ! {safe_line(fault)}")
        if not lint:
            _refuse_name_of_an_arm(arm, folder)
            if earlier.get(arm.name, arm.folder().name) != arm.folder().name:
                print(f"  ! it takes the place of an earlier run named '{safe_line(arm.name)}' in the report, which "
                      f"stays in {folder / earlier[arm.name]}; rename the file to show both")
            arm.run(store, ranked=ranked)
            scored.append(arm.name)
    if lint:
        return 0
    # in a folder of its own the first file is what all others are compared with; beside arms, their first stays that
    order = scored if experiment == SCORE else [*earlier, *scored]
    report = build(folder, sweep.contrasts or None, list(dict.fromkeys([*order, *failed])),
                   notes=[f"{name} failed: {why}." for name, why in failed.items()])
    print_report(report.view)
    print(f"report: {report.html}")
    return 0


def _refuse_name_of_an_arm(arm: Arm, folder: Path) -> None:
    """Raise MemlabError if an arm that is no ranking file has this name: the report would show one of them alone."""
    for place in folder.glob(f"{safe(arm.name)}-*/manifest.json"):
        try:
            manifest = read_json(place)
        except (OSError, ValueError):  # a report names it as damaged
            continue
        if manifest.get("arm") == arm.name and ForeignRun.__name__ not in json.dumps(manifest.get("pipeline")):
            raise MemlabError(f"an arm of {folder} has the name '{arm.name}'", where=arm.name,
                              fix="rename the file: its name is the name of its arm")


if __name__ == "__main__":
    raise SystemExit(main())
