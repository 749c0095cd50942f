"""Importances of a fit's features, and what each feature adds to the lead of a turn over the next one."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.learn.ranker.features import PAIR, features
from memlab.learn.ranker.likeness import turn_terms
from memlab.learn.ranker.model import RankModel, apply, leads
from memlab.learn.ranker.reasons import importances
from memlab.learn.ranker.session_fits import places
from memlab.learn.ranker.stage import rescore, session_numbers
from memlab.tables import SESSION, Tables, with_text
from memlab.text.display import one_line


def describe_importances(model: RankModel, most: int = 15) -> str:
    """Return a table of the features whose splits gain most: their shares of the gain of all splits."""
    gains = importances([(np.zeros(0, np.bool_), model)])
    return "\n".join(f"{gain / gains['gain'].sum():7.1%}  {feature}" for feature, gain in gains.head(most).iter_rows())


def explain(model: RankModel, tables: Tables, question: str, most: int = 8, turns: int = 3) -> str:
    """Return why the first turns of a question stand first: what each feature adds to their lead over the next turn.

    ``question`` is the text of a question, or a part of only one. Raises MemlabError for any other.
    """
    asked = with_text(tables["questions"], tables["texts"])
    chosen = asked.filter(pl.col("text") == question)
    if not chosen.height:
        chosen = asked.filter(pl.col("text").str.to_lowercase().str.contains(question.lower(), literal=True))
    if chosen.height != 1:
        raise MemlabError(f"{chosen.height} questions have this text", where="question",
                          fix="give the words of one question of these data")
    own = tables.updated({"ranking": tables["ranking"].join(chosen, on="question", how="semi")})
    frame = features(own, model.depth)
    if not frame.height:
        raise MemlabError("nothing was found for this question", where="question")
    scores = apply(model, frame)
    placed = places([(np.ones(frame.height, np.bool_), model)], frame, session_numbers(frame, own["units"]), scores,
                    turn_terms(frame, own))
    ranking = rescore(own["ranking"], frame, scores, model.depth, placed)
    row_of = {unit: row for row, unit in enumerate(frame["unit"])}
    order = [row_of[unit] for unit in ranking.filter(pl.col("rank") <= turns + 1)["unit"] if unit in row_of]
    ahead, behind = (np.array(rows, np.int64) for rows in (order[:-1], order[1:]))
    parts = leads(model, frame[ahead], frame[behind])
    by_trees = {int(row): place for place, row in enumerate(np.argsort(-scores, kind="stable"), 1)}
    lines = [one_line(chosen["text"][0])]
    said = with_text(own["units"].select("unit", *SESSION, pl.col("turns").list.first().alias("turn")).join(
        own["turns"], on=[*SESSION, "turn"]), own["texts"])
    texts = dict(said.join(frame.select(PAIR), on="unit", how="semi").select("unit", "text").iter_rows())
    for rank, row in enumerate(order[:turns], 1):
        text = one_line(texts[frame["unit"][int(row)]])[:160]
        by_its_session = "" if by_trees[row] == rank else f"{by_trees[row]} by trees and moved by the session model, "
        lines.append(f"\n{rank}. score {scores[row]:.2f}, {by_its_session}{row + 1} by weights: {text}")
        if rank == len(order):
            break
        following, lead = order[rank], parts[rank - 1]
        lines.append(f"   lead over the next one by trees: {lead.sum():+.2f}; of which, with its value in brackets:")
        for i in (i for i in np.argsort(-np.abs(lead), kind="stable")[:most] if lead[i]):
            one, two = (_value(frame[model.features[i]][int(at)]) for at in (row, following))
            lines.append(f"   {lead[i]:+.2f}  {model.features[i]} = {one} ({two})")
    return "\n".join(lines)


def _value(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
