"""Calibration of a judge by synthetic answers, which are right or wrong by construction.

``memlab experiment judge_calibration --data locomo --judge strict --chat NAME`` prints sensitivity, specificity by kind
of answer, kappa, and the leniency curve of any judge.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from judge_calibration.agreement import Pair, Share, agreement, share
from judge_calibration.synthetic_answers import RIGHT, WRONG, CalibrationSet, SyntheticAnswer, make_answers
from memlab.commands import judge_files as command
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import Notes, Tables, add_texts, frame
from memlab.stages.judge.accuracy import CALIBRATION_FILE, MIN_SPECIFICITY, bias, decimal, needs_warning, read_judges
from memlab.store import Store
from memlab.support.files import atomic_write
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.terminal import print
from memlab.support.text.display import safe_line


def as_tables(tables: Tables, answers: Sequence[SyntheticAnswer]) -> Tables:
    """Make each answer a question of its own, numbered by position, so that any judge can read them."""
    rows = pl.DataFrame({"question": [a.question for a in answers]}, schema={"question": pl.Int32})
    numbers = pl.Series("question", range(len(answers)), dtype=pl.Int32)

    def of_each_answer(name: str) -> pl.DataFrame:
        joined = rows.join(tables[name], on="question", how="left", maintain_order="left")
        return joined.with_columns(numbers).select(tables[name].columns)

    ids, texts = add_texts(tables["texts"], [a.text for a in answers])
    table = frame("answers", {"question": numbers, "sample": [0] * len(answers), "text_id": ids})
    return Tables(questions=of_each_answer("questions"), gold=of_each_answer("gold"), answers=table, texts=texts)


def judge_answers(judge: Stage, tables: Tables, kit: CalibrationSet, store: Store, notes: Notes | None = None
                  ) -> dict[str, list[bool | None]]:
    """Return, for each judge's name, its verdict on each synthetic answer (null: no verdict).

    What the judges count, such as empty replies, is added to ``notes``.
    """
    notes = Notes() if notes is None else notes
    verdicts = notes.include(judge.run(as_tables(tables, kit.answers).only(judge.reads), store))["verdicts"]
    return {name: verdicts.filter(judge=name).sort("question")["correct"].to_list()
            for name in verdicts["judge"].unique(maintain_order=True)}


def calibrate(kit: CalibrationSet, verdicts: Sequence[bool | None], seed: int = 0) -> dict[str, Any]:
    """Summarise one judge's verdicts; answers without a verdict are counted and left out of every share.

    ``kinds`` holds the share of correct verdicts for each kind of answer. ``leniency`` holds the share of answers that
    were judged right, for each kind of wrong answer, from the plainly wrong to the nearly right.
    """
    judged = [(a, verdict) for a, verdict in zip(kit.answers, verdicts, strict=True) if verdict is not None]
    pairs = [Pair(a.question, a.right, verdict) for a, verdict in judged]
    by_kind = {kind: [verdict for a, verdict in judged if a.kind == kind] for kind in (*WRONG, *RIGHT)}
    figures = agreement(pairs, seed)
    return {
        "items": len(kit.answers), "unreadable": len(kit.answers) - len(judged),
        **figures,
        "kinds": {kind: share(values.count(kind in RIGHT), len(values)) for kind, values in by_kind.items()},
        "leniency": [{"kind": kind, **share(sum(by_kind[kind]), len(by_kind[kind]))} for kind in WRONG],
        "skipped": kit.skipped, "least_specificity": MIN_SPECIFICITY,
        "flagged": needs_warning(figures["specificity"]["value"]),
    }


def sample(kit: CalibrationSet, limit: int | None, seed: int = 0) -> CalibrationSet:
    """Keep the answers to ``limit`` questions, sampled with the seed."""
    questions = sorted({a.question for a in kit.answers})
    if limit is None or limit >= len(questions):
        return kit
    sampled = set(random.Random(seed).sample(questions, limit))  # noqa: S311 - draws, not secrets
    return CalibrationSet([a for a in kit.answers if a.question in sampled], kit.skipped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all is well, 1 with a message if not."""
    parser = Parser(prog="memlab experiment judge_calibration", description=__doc__)
    command.add_arguments(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="answers to N questions only, sampled with the seed")
    parser.add_argument("--seed", type=int, default=0, help="seed of answers, sample and resamples (default 0)")
    parser.add_argument("--out", type=path_argument, default=Path("runs") / CALIBRATION_FILE, metavar="JSON",
                        help=f"where the figures go (default runs/{CALIBRATION_FILE})")
    return command.run(parser, arguments, _run)


def _run(args: argparse.Namespace, fields: dict[str, str]) -> int:
    judges = read_judges(args.out)  # other judges' figures stay
    judge = command.make_judge(args.judge, args.chat, fields, args.judge_fields)
    tables = command.load(args.data, args.path)
    kit = sample(make_answers(tables, args.seed), args.limit, args.seed)
    notes = Notes()
    for name, verdicts in judge_answers(judge, tables, kit, Store(args.store), notes).items():
        summary = calibrate(kit, verdicts, args.seed)
        warnings = {what: number for what, number, _ in notes.table().iter_rows() if what.startswith(f"judge {name}: ")}
        judges[name] = {"data": args.data, "seed": args.seed, "limit": args.limit, "told": warnings, **summary}
        print(f"judge {safe_line(name)} on {safe_line(args.data)}, {summary['items']:,} synthetic answers")
        print("\n".join([*_lines(summary), *(f"  {safe_line(what)}: {number:,}" for what, number in warnings.items())]))
    atomic_write(args.out, json.dumps({"judges": judges}, indent=1) + "\n")
    print(f"figures: {safe_line(args.out)}")
    return 0


def _lines(summary: Mapping[str, Any]) -> list[str]:
    lines = [_line(name, summary[name]) for name in ("sensitivity", "specificity", "kappa")]
    for title, kinds in (("wrong answers judged wrong", WRONG), ("right answers judged right", RIGHT)):
        lines.append(f"  {title}, by kind (in brackets: questions without such an answer)")
        lines += [_line(f"  {kind}", summary["kinds"][kind], f" ({summary['skipped'][kind]})") for kind in kinds]
    if summary["unreadable"]:
        lines.append(f"  {summary['unreadable']} without a verdict, left out of every share")
    if summary["flagged"]:
        least = summary["least_specificity"]
        off = bias(summary["specificity"]["value"], summary["sensitivity"]["value"])
        lines.append(f"  FLAGGED: specificity below {least}, so that accuracies by this judge are {off}")
    return lines


def _line(name: str, figure: Share, note: str = "") -> str:
    if figure["value"] is None:
        return f"  {name:<14} -{note}"
    span = "" if figure["low"] is None else f" ({decimal(figure['low'])} to {decimal(figure['high'])})"
    return f"  {name:<14} {decimal(figure['value'])}{span}, n = {figure['n']}{note}"


if __name__ == "__main__":
    raise SystemExit(main())
