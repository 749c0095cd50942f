"""Questions that share the texts of evidence sessions, as tables, for tests of groups and folds."""

from __future__ import annotations

import polars as pl

from memlab.pipeline.tables import frame, text_hash


def world(evidence: list[tuple[int, int, str]], corpora: list[int] | None = None,
          ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Questions, evidence and turns; evidence is (question, session, text of that session)."""
    n = max(q for q, _, _ in evidence) + 1
    corpora = corpora or list(range(n))
    questions = frame("questions", {"question": list(range(n)), "corpus": corpora})
    gold = frame("evidence", {"question": [q for q, _, _ in evidence], "session": [s for _, s, _ in evidence]})
    turns = frame("turns", {"corpus": [corpora[q] for q, _, _ in evidence], "session": [s for _, s, _ in evidence],
                            "turn": [0] * len(evidence), "role": ["user"] * len(evidence),
                            "text_id": [text_hash(t) for _, _, t in evidence]})
    return questions, gold, turns.unique(maintain_order=True)
