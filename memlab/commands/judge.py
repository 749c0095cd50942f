"""Scores of your own answers: ``memlab judge FILE --data longmemeval_oracle [--judge official --chat NAME]``.

FILE holds one ``{"question_id": ..., "hypothesis": ...}`` per line. Prints accuracy by question type with intervals,
as LongMemEval's own scripts count it, and writes ``FILE.verdicts.jsonl``, with the ``fault`` of replies that are
empty or cut off. Replies are stored, so a second run asks only for what is missing. ``--judge f1`` and other rules need
no server.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from memlab.commands import judge_files as command
from memlab.stages.judge import accuracy, llm
from memlab.stages.judge.accuracy import CALIBRATION_FILE, judge_warnings
from memlab.stages.judge.cases import question_ids, read, with_answers
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.terminal import print
from memlab.support.text.display import safe_line

_SHOWN = 5  # ids named before "and n more"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all is well, 1 with a message if not."""
    parser = Parser(prog="memlab judge", description=__doc__)
    parser.add_argument("file", type=path_argument, help="JSONL of question_id and hypothesis")
    command.add_arguments(parser)
    parser.add_argument("--calibration", type=path_argument, default=Path("runs") / CALIBRATION_FILE, metavar="JSON",
                        help="specificity of judges, from `memlab experiment judge_calibration` (default "
                             f"runs/{CALIBRATION_FILE})")
    return command.run(parser, arguments, _run)


def _run(args: argparse.Namespace, fields: dict[str, str]) -> int:
    if not args.file.is_file():
        raise MemlabError("it is no file" if args.file.exists() else "no such file", where=str(args.file),
                          fix="give a file of JSON lines with question_id and hypothesis")
    judge = command.make_judge(args.judge, args.chat, fields, args.judge_fields)
    tables = command.load(args.data, args.path)
    question_of = question_ids(tables)
    file = read(args.file, question_of)
    _warn("ids that are not in the data set, skipped as the official script does", file.unknown)
    _warn("questions without a hypothesis, not counted", file.missing)
    answers = with_answers(tables, file.hypotheses)
    table = judge.run(answers.only(judge.reads), Store(args.store))["verdicts"]
    id_of = {question: name for name, question in question_of.items()}
    out = args.file.with_name(args.file.name + ".verdicts.jsonl")
    rows = [{"question_id": id_of[row["question"]], "hypothesis": file.hypotheses[row["question"]],
             "judge": row["judge"], "correct": row["correct"], "reply": row["reply"],
             **({} if row["fault"] is None else {"fault": row["fault"]})}
            for row in table.iter_rows(named=True)]
    # json.dumps writes ASCII, so that no text controls a terminal or fails to encode
    atomic_write(out, "".join(json.dumps(row) + "\n" for row in rows), other="move the hypotheses")
    for name in table["judge"].unique(maintain_order=True):
        verdicts = table.filter(judge=name)
        _report(name, accuracy.accuracy_table(answers, verdicts), len(question_of))
        for remark in accuracy.remarks(verdicts):
            print(f"  {safe_line(remark)}")
        _report_unclear(judge, name, verdicts.filter(pl.col("fault").is_null())["reply"].to_list())
        for flag in judge_warnings([name], args.calibration):
            print(f"  {safe_line(flag)}")
    print(f"verdicts: {safe_line(out)}")
    return 0


def _report(name: str, rows: list[accuracy.AccuracyRow], questions: int) -> None:
    print(f"judge {safe_line(name)}")
    for line in accuracy.format_table(rows):
        print(f"  {safe_line(line)}")
    print(f"  mean of the types: {accuracy.decimal(accuracy.mean_of_types(rows))}")
    overall = rows[-2]
    if overall.n < questions:
        print(f"  of all {questions} questions, those without a verdict taken as wrong: "
              f"{accuracy.decimal(overall.right / questions)}")


def _report_unclear(judge: Any, name: str, replies: list[str]) -> None:
    """Print how many replies have no verdict, or another one, where they are read as the strict judge reads them."""
    judges = getattr(judge, "judges", (judge,))
    if not any(one.name == name and getattr(one, "counts_yes", False) for one in judges):
        return
    words = [(llm.contains_yes(reply), llm.first_word(reply)) for reply in replies]
    vague, opposed = sum(word is None for _, word in words), sum(word not in (None, rule) for rule, word in words)
    if vague or opposed:
        print(f"  {vague} replies say neither yes nor no for certain, and {opposed} contain 'yes' though they say no; "
              "the official rule counts any reply that contains 'yes'. --judge strict reads what they say.")


def _warn(what: str, ids: list[str]) -> None:
    if ids:
        more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        print(f"{what} ({len(ids)}): {safe_line(', '.join(ids[:_SHOWN]))}{more}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
