"""Objects that stages derive from the texts of a live memory, kept from question to question."""

from __future__ import annotations

from typing import Protocol

import polars as pl


class Kept(Protocol):
    """Something derived from texts, which can forget some of them."""

    def forget_other_texts(self, ids: pl.Series) -> None:
        """Forget all texts but those with these ids (n,)."""
