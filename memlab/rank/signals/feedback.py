"""Signal: feedback of users on memories that they were shown."""

from __future__ import annotations

import hashlib
from typing import Any

import polars as pl
from pydantic import model_validator

from memlab.errors import MemlabError
from memlab.rank.signals.helpers import PAIR, on_units
from memlab.stage import LocalPath, name_of, stage
from memlab.tables import Tables, as_of, text_hash

_COLUMNS = {"text": pl.String, "useful": pl.Int64, "useless": pl.Int64, "on": pl.Date}


@stage
class Feedback:
    """(useful + 1) / (useful + useless + 2): the share of good votes, with one vote of each kind as a prior.

    ``path`` is a JSON Lines file of {"text": a memory's value or key word for word, "useful": 2, "useless": 0, "on":
    "2023-05-20"}, any number of lines per text. Feedback of a later day than the question's is left out. The counts of
    all memories of a unit are added; a unit without feedback has .5.
    """

    path: LocalPath
    name: str = "feedback"

    @model_validator(mode="after")
    def _readable(self) -> Feedback:
        self.read()
        return self

    def identity(self) -> dict[str, Any]:
        """Return the content of the file, not its path."""
        return {"is": name_of(type(self)), "name": self.name,
                "feedback": hashlib.blake2b(self.path.read_bytes(), digest_size=16).hexdigest()}

    def read(self) -> pl.DataFrame:
        """Return (text_id, useful, useless, on); raise MemlabError for a file that does not hold that."""
        try:
            rows = pl.read_ndjson(self.path, schema={**_COLUMNS, "on": pl.String}).with_columns(
                pl.col("on").str.to_date("%Y-%m-%d"))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise MemlabError(str(error).splitlines()[0], where=f"feedback, {self.path}",
                              fix='write lines of {"text": "", "useful": 1, "useless": 0, "on": "2023-05-20"}'
                              ) from None
        if rows.null_count().sum_horizontal().sum():
            raise MemlabError("a line lacks text, useful, useless or on", where=f"feedback, {self.path}",
                              fix="write all four in every line")
        ids = pl.Series("text_id", [text_hash(text) for text in rows["text"]], pl.String)
        return rows.select(ids, "useful", "useless", "on")

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        either = pl.concat_list("key_id", "value_id").alias("text_id")
        texts = tables["memories"].select("memory", either).explode("text_id").unique()
        dates = tables["questions"].select("question", "asked_on")
        counts = (on_units(tables).join(texts, on="memory").join(self.read(), on="text_id").join(dates, on="question")
                  .filter(as_of("on"))
                  .group_by(PAIR).agg(pl.col("useful", "useless").sum()))
        good, bad = pl.col("useful").fill_null(0), pl.col("useless").fill_null(0)
        return tables["ranking"].select(PAIR).join(counts, on=PAIR, how="left", maintain_order="left").select(
            *PAIR, ((good + 1) / (good + bad + 2)).alias("value"))
