"""Certainty of one arm on questions whose evidence was taken away, beside the same questions with theirs.

    PYTHONPATH=experiments python experiments/stale/nothing.py system=plain data=locomo data.path=FILE [data.sample=200]

Each answerable question is asked twice. Where it has its haystack to itself, its evidence sessions are exchanged for as
many sessions of other haystacks that are nobody's evidence; where questions share one, they are taken out, and as many
others are taken out of its twin. Then: AUROC with its interval over conversations, the share refused where 5 % of the
answerable ones are, and of the most certain questions the share without evidence (risk against coverage).

A threshold of certainty is printed, and ``at=NUMBER`` tells how often another kind's threshold errs here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.data.dataset import groups, session_texts
from memlab.evaluate.certainty import certainty, figures, threshold
from memlab.evaluate.statistics import grouped_mean
from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import OF_RUNS, read_one
from memlab.pipeline.tables import SESSION, Tables
from memlab.store import store_at


def exchange(tables: Tables, seed: int = 0) -> Tables:
    """Return each answerable question twice, each with a corpus of its own: 2 n with its evidence, 2 n + 1 without."""
    asked = tables["questions"].join(tables["gold"].filter("scored", ~pl.col("abstain")), on="question", how="semi")
    contents = session_texts(tables["turns"])
    cited = tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question").select(SESSION)
    free = contents.join(cited, on=SESSION, how="anti").unique("content", maintain_order=True)
    places, rng = [], np.random.default_rng(seed)
    for n, question, corpus in asked.select("question", "corpus").with_row_index().iter_rows():
        own = tables["sessions"].filter(corpus=corpus).select(*SESSION, "said_on", pl.col("session").alias("old"))
        gone = own.join(tables["evidence"].filter(question=question), on="session", how="semi")
        others = own.join(gone, on="session", how="anti")
        kept = own
        if asked.filter(corpus=corpus).height > 1:
            kept = own.join(others[rng.permutation(others.height)[:gone.height]], on="session", how="anti")
        else:
            held = contents.filter(corpus=corpus)["content"].implode()
            donors = free.filter(~pl.col("content").is_in(held))
            drawn = donors[rng.choice(donors.height, gone.height, replace=False)]
            others = pl.concat([others, gone.with_columns(drawn["corpus"], drawn["session"].alias("old"))])
        places += [rows.rename({"corpus": "owner"}).with_columns(pl.lit(2 * n + i, pl.Int32).alias("corpus"))
                   for i, rows in enumerate((kept, others))]
    placed = pl.concat(places)
    turns = tables["turns"].rename({"corpus": "owner", "session": "old"}).join(placed, on=["owner", "old"])
    twins = [asked.with_columns((2 * pl.int_range(pl.len(), dtype=pl.Int32) + i).alias("question")).with_columns(
        pl.col("question").alias("corpus")) for i in (0, 1)]
    return Tables(texts=tables["texts"], sessions=placed.select(*SESSION, "said_on").sort(SESSION),
                  turns=turns.select(tables["turns"].columns).sort(*SESSION, "turn"),
                  questions=pl.concat(twins).sort("question"))


def main(words: Sequence[str]) -> None:
    """Print the figures of one arm."""
    at = next((float(word[3:]) for word in words if word.startswith("at=")), None)
    arm, settings = read_one([word for word in words if not word.startswith("at=")], OF_RUNS)
    tables = load(arm.dataset)
    ran = arm.pipeline.without_judges().run(exchange(tables), store_at(settings.store))
    scores, answerable = certainty(ran).to_numpy(), np.arange(ran["questions"].height) % 2 == 0
    of = groups(tables["questions"], tables["evidence"], tables["turns"], arm.dataset.grouping()).join(
        tables["gold"].filter("scored", ~pl.col("abstain")), on="question", how="semi")["group"].to_numpy().repeat(2)
    for name, values in figures(scores, answerable, ~answerable).items():
        known = ~np.isnan(values)
        mean = grouped_mean(values[known], of[known])
        print(f"{name}: {mean.value:.3f} {mean.interval()}, {known.sum()} questions, {len(np.unique(of))} groups")
    absent = (~answerable)[np.argsort(-scores, kind="stable")].cumsum() / np.arange(1, len(scores) + 1)
    print("risk:", ", ".join(f"{absent[int(c * len(scores)) - 1]:.3f} at {c:.0%}" for c in (0.25, 0.5, 0.75, 1)))
    line = threshold(scores[answerable]) if at is None else at
    print(f"threshold {line:.4g}: refused {(scores[answerable] < line).mean():.3f} of the answerable questions, "
          f"{(scores[~answerable] < line).mean():.3f} of the others", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
