"""Calibration of a judge: ``python -m memlab.judge.calibrate --data locomo --judge official --chat NAME``.

Runs any judge over the calibration kit (``synthetic_answers``), whose right and wrong answers are so by the way
they were made: sensitivity, specificity by kind of forgery, kappa, and the leniency curve.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from memlab.judge import command
from memlab.judge.calibration.agreement import Pair, Share, kappa_of, sensitivity, share, specificity
from memlab.judge.calibration.labelling_sheet import against_people, read_sheet, write_sheet
from memlab.judge.calibration.synthetic_answers import RIGHT, WRONG, Forgery, Kit, kit
from memlab.judge.calibration.trust import MIN_SPECIFICITY, bias, flagged
from memlab.judge.cases import Case, cases
from memlab.judge.tally import decimal
from memlab.runtime.files import atomic_write, os_errors
from memlab.stage import Stage
from memlab.store import Store
from memlab.tables import Tables, add_texts, frame
from memlab.text.display import sanitise


def as_tables(tables: Tables, forgeries: Sequence[Forgery]) -> Tables:
    """Make of each forgery a question of its own, numbered by position, so that any judge can be run over them."""
    rows = pl.DataFrame({"question": [f.question for f in forgeries]}, schema={"question": pl.Int32})
    numbered = pl.Series("question", range(len(forgeries)), dtype=pl.Int32)

    def copied(name: str) -> pl.DataFrame:
        joined = rows.join(tables[name], on="question", how="left", maintain_order="left")
        return joined.with_columns(numbered).select(tables[name].columns)

    ids, texts = add_texts(tables["texts"], [f.text for f in forgeries])
    answers = frame("answers", {"question": numbered, "sample": [0] * len(forgeries), "text_id": ids})
    return Tables(questions=copied("questions"), gold=copied("gold"), answers=answers, texts=texts)


def judged(judge: Stage, tables: Tables, made: Kit, store: Store) -> dict[str, list[bool | None]]:
    """Give every forgery to a judge; return, a judge's name, what it said of each (null: no verdict)."""
    given = as_tables(tables, made.forgeries)
    verdicts = judge.run(given.only(judge.reads), store)["verdicts"]
    return {name: verdicts.filter(judge=name).sort("question")["correct"].to_list()
            for name in verdicts["judge"].unique(maintain_order=True)}


def calibrate(made: Kit, said: Sequence[bool | None], seed: int = 0) -> dict[str, Any]:
    """Sum up what one judge said of the kit; what has no verdict is counted and left out of every share.

    ``kinds`` holds, a kind, the share judged as it should be (specificity or sensitivity), and ``leniency``, from
    the plainly wrong to the nearly right, the share of wrong answers that were judged right.
    """
    told = [(f, verdict) for f, verdict in zip(made.forgeries, said, strict=True) if verdict is not None]
    pairs = [Pair(f.question, f.right, verdict) for f, verdict in told]
    kinds: dict[str, Share] = {}
    for kind in (*WRONG, *RIGHT):
        hits = [verdict == f.right for f, verdict in told if f.kind == kind]
        kinds[kind] = share(sum(hits), len(hits))
    whole = specificity(pairs)
    return {
        "items": len(made.forgeries), "unreadable": len(made.forgeries) - len(told),
        "sensitivity": sensitivity(pairs), "specificity": whole, "kappa": kappa_of(pairs, seed), "kinds": kinds,
        "leniency": [{"kind": kind, **_passed(kind, told)} for kind in WRONG],
        "skipped": made.skipped, "least_specificity": MIN_SPECIFICITY, "flagged": flagged(whole["value"]),
    }


def _passed(kind: str, told: Sequence[tuple[Forgery, bool]]) -> Share:
    passed = [verdict for forgery, verdict in told if forgery.kind == kind]
    return share(sum(passed), len(passed))


def sample(made: Kit, limit: int | None, seed: int = 0) -> Kit:
    """Keep the forgeries of ``limit`` questions, drawn by the seed."""
    questions = sorted({f.question for f in made.forgeries})
    if limit is None or limit >= len(questions):
        return made
    kept = set(random.Random(seed).sample(questions, limit))  # noqa: S311 - draws, not secrets
    return Kit([f for f in made.forgeries if f.question in kept], made.skipped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all is well, 1 with a message if not."""
    parser = argparse.ArgumentParser(prog="python -m memlab.judge.calibrate", description=__doc__.split("\n")[0])
    command.add_arguments(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="forgeries of N questions, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, help="of the kit, the draw and the resamples (default 0)")
    parser.add_argument("--out", type=Path, default=Path("runs/calibration.json"), metavar="JSON",
                        help="where the figures go (default runs/calibration.json)")
    parser.add_argument("--sheet", type=Path, metavar="CSV", help="also write a sheet for labels by hand")
    parser.add_argument("--sheet-size", type=int, default=100, metavar="N", help="rows of the sheet (default 100)")
    parser.add_argument("--labels", type=Path, metavar="CSV", help="a sheet with labels: how far each judge agrees")
    return command.run(parser, arguments, _run)


def _run(given: argparse.Namespace, fields: dict[str, str]) -> int:
    judge = command.make_judge(given.judge, given.chat, fields)
    tables = command.load(given.data, given.path)
    made = sample(kit(tables, given.seed), given.limit, given.seed)
    shown = cases(as_tables(tables, made.forgeries))
    labels = read_sheet(given.labels).right if given.labels else None
    if given.sheet:
        drawn = random.Random(given.seed).sample(shown, min(given.sheet_size, len(shown)))  # noqa: S311
        print(f"{write_sheet(given.sheet, drawn)} rows to label: {sanitise(str(given.sheet))}")
    figures = _before(given.out)
    for name, said in judged(judge, tables, made, Store(given.store)).items():
        found = calibrate(made, said, given.seed)
        if labels is not None:
            found["against_people"] = _people(labels, shown, said, given.seed)
        figures["judges"][name] = {"data": given.data, "seed": given.seed, "limit": given.limit, **found}
        print(f"judge {sanitise(name)} on {sanitise(given.data)}, {found['items']:,} answers made")
        print("\n".join(_lines(found)))
    with os_errors("the figures cannot be written", given.out):
        given.out.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(given.out, json.dumps(figures, indent=1) + "\n")
    print(f"figures: {sanitise(str(given.out))}")
    return 0


def _before(path: Path) -> dict[str, Any]:
    """Return what the file says of other judges; an unreadable one is begun anew."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {"judges": {}}
    known = isinstance(content, dict) and isinstance(content.get("judges"), dict)
    return content if known else {"judges": {}}


def _people(labels: Mapping[str, bool], shown: Sequence[Case], said: Sequence[bool | None],
            seed: int) -> dict[str, Share]:
    pairs = against_people(labels, shown, said)
    return {"kappa": kappa_of(pairs, seed), "sensitivity": sensitivity(pairs), "specificity": specificity(pairs)}


def _lines(found: Mapping[str, Any]) -> list[str]:
    lines = [_line(name, found[name]) for name in ("sensitivity", "specificity", "kappa")]
    for title, kinds in (("wrong answers judged wrong", WRONG), ("right answers judged right", RIGHT)):
        lines.append(f"  {title}, by kind (questions that it could not be made for)")
        lines += [_line(f"  {kind}", found["kinds"][kind], f" ({found['skipped'][kind]})") for kind in kinds]
    lines += [_line(f"{name} against labels by hand", value) for name, value in
              found.get("against_people", {}).items()]
    if found["unreadable"]:
        lines.append(f"  {found['unreadable']} without a verdict, left out of every share")
    if found["flagged"]:
        least = found["least_specificity"]
        off = bias(found["specificity"]["value"], found["sensitivity"]["value"])
        lines.append(f"  FLAGGED: specificity below {least}, so that accuracies by this judge are {off}")
    return lines


def _line(name: str, figure: Share, note: str = "") -> str:
    if figure["value"] is None:
        return f"  {name:<14} -{note}"
    span = "" if figure["low"] is None else f" ({decimal(figure['low'])} to {decimal(figure['high'])})"
    return f"  {name:<14} {decimal(figure['value'])}{span}, n = {figure['n']}{note}"
