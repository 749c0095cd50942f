"""Importances of the features of a learned ranking: the gain of the splits that use them."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.learn.ranker.cross_fit import Fits
from memlab.learn.ranker.model import RankModel
from memlab.pipeline.tables import DIGITS, SCHEMAS


def importances(fits: Fits) -> pl.DataFrame:
    """Return the table ``importances``: features with a gain, summed over the fits, largest first."""
    gains: dict[str, float] = {}
    for _, model in fits:
        for name, gain in zip(model.features, model.gains):
            gains[name] = gains.get(name, 0.0) + gain
    table = pl.DataFrame({"feature": list(gains), "gain": list(gains.values())}, schema=SCHEMAS["importances"])
    return table.filter(pl.col("gain") > 0).with_columns(pl.col("gain").round(DIGITS)).sort(
        "gain", "feature", descending=[True, False])


def describe_importances(model: RankModel, most: int = 15) -> str:
    """Return a table of the features whose splits gain most: their shares of the gain of all splits."""
    gains = importances([(np.zeros(0, np.bool_), model)])
    return "\n".join(f"{gain / gains['gain'].sum():7.1%}  {feature}" for feature, gain in gains.head(most).iter_rows())
