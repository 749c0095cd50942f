"""Fusion of ranking files: ``memlab fuse RUN RUN... [method=rrf] [normaliser=minmax] [out=fused.trec]``.

Each file is a search, and the rule is one of ``rank/score``: ``rrf`` (ranks alone), ``weighted`` (the sum of the
normalised scores), ``combmnz`` (that sum, times the number of files that have the document) or ``calibrated_max``. The
formats are those of ``memlab score``, which reads the new file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import polars as pl

from memlab.evaluate.export import escape, run_lines
from memlab.evaluate.score.runs import read_run
from memlab.stages.rank.fusion import Method, Normaliser, Scorer
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import plural


def fuse(runs: Sequence[pl.DataFrame], scorer: Scorer) -> pl.DataFrame:
    """Return (topic, document, rank, score) of runs (topic, document, score); equal scores are in order of the name."""
    names = [f"run {number}" for number in range(len(runs))]
    frame = pl.concat([run.select("topic", "document", pl.col("score").alias(name)).unique(["topic", "document"])
                       for run, name in zip(runs, names)], how="align")
    scored = scorer.fuse(frame.with_columns(pl.col("topic").rank("dense").alias("question")), names)
    ordered = scored.sort("topic", "score", "document", descending=[False, True, False])
    return ordered.select("topic", "document", pl.int_range(1, pl.len() + 1).over("topic").alias("rank"), "score")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the new file; return 0, or 1 if a run cannot be read or the file cannot be written."""
    parser = Parser(prog="memlab fuse", description=__doc__)
    parser.add_argument("runs", nargs="+", type=path_argument, metavar="RUN", help="a ranking file")
    parser.add_argument("--method", choices=get_args(Method), default="rrf", help="default: rrf (also method=rrf)")
    parser.add_argument("--normaliser", choices=get_args(Normaliser), default="minmax", metavar="NAME",
                        help=f"of the scores, but for rrf: {', '.join(get_args(Normaliser))}; default: minmax")
    parser.add_argument("--out", type=path_argument, default=Path("fused.trec"), help="default: fused.trec")
    options = parser.parse_args(as_flags(sys.argv[1:] if argv is None else argv, {
        "method": "--method", "normaliser": "--normaliser", "out": "--out"}))
    try:
        scorer = Scorer(method=options.method, normaliser=options.normaliser)
        fused = fuse([read_run(path).rows for path in options.runs], scorer)
        rows = ((escape(topic), escape(document), rank, score) for topic, document, rank, score in fused.iter_rows())
        atomic_write(options.out, run_lines(rows, options.method))
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: {plural(fused.height, 'row')} of {plural(fused['topic'].n_unique(), 'topic')}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
