"""Fit learned fusion on one or several data sets, or explain a ranking by a saved fit.

    memlab train ranker data=locomo data.path=FILE out=FIT.json
    memlab train ranker data=locomo data.path=FILE data=longmemeval_s data.path=FILE out=FIT.json
    memlab train ranker explain question="When did Ann move?" model=FIT.json data=locomo data.path=FILE

Each word ``data=...`` opens a data set; ``data.*`` behind it belongs to it. All other words are those of memlab run and
hold for every data set; without ``system=`` or ``rank/score=`` the ranking is that of ``system=best_learned``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from memlab.errors import MemlabError
from memlab.harness.arm import Arm
from memlab.harness.arm import load as load_data
from memlab.learn.command import read_arm, report, split
from memlab.learn.fits import save
from memlab.learn.ranker.cross_fit import fit_both, together
from memlab.learn.ranker.explain import describe_importances, explain
from memlab.learn.ranker.model import load
from memlab.learn.ranker.stage import LearnedScore
from memlab.runtime.help_text import page
from memlab.runtime.machine import OF_A_RUN, enough_memory
from memlab.runtime.terminal import own_words, print
from memlab.tables import Tables


def first_stage(words: Sequence[str]) -> tuple[LearnedScore, Arm, Tables]:
    """Return the stage that these words configure, its arm, and all tables after its first step."""
    if not any(word.startswith(("system=", "rank/score=")) for word in words):
        words = [*words, "system=best_learned"]
    arm, store = read_arm(words)
    score = arm.pipeline.score
    if not isinstance(score, LearnedScore):
        raise MemlabError("the slot rank.score holds no learned fusion",
                          fix="system=best_learned or rank/score=learned")
    start = arm.pipeline.replace(score=score.linear())
    tables = start.run(load_data(arm.dataset), store, until="score")
    return score, arm, tables.updated({"ranking": score.with_signals(tables, store)})


@enough_memory(OF_A_RUN)
def train(words: Sequence[str], out: Path) -> str:
    """Fit on the data sets that the words name, save the fit, and return a line about it."""
    parts, names = [], []
    for part in split(words):
        score, arm, tables = first_stage(part)
        parts.append(score.learnable(tables))
        names.append(arm.dataset.name)
    model = fit_both(together(parts), score.depth, score.fit_recipe, tuple(names))
    save(model, out)
    return (f"fitted on {model.questions:,} questions of {', '.join(names)}: {len(model.trees)} trees over "
            f"{len(model.features)} features: {out}\n" + describe_importances(model))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or {"-h", "--help"} & set(words):
        print(page(__doc__))
        return 0

    def action() -> str:
        own, others = own_words([word for word in words if word != "explain"], ["out", "question", "model"])
        if "explain" not in words:
            if not own.get("out"):
                raise MemlabError("no file for the fit is given", fix="out=FIT.json")
            return train(others, Path(own["out"]))
        if not own.get("question") or not own.get("model"):
            raise MemlabError("a question and a fit are needed", fix='question="..." model=FIT.json')
        return explain(load(Path(own["model"])), first_stage(others)[2], own["question"])

    return report(action)
