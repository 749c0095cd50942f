"""Twins of questions: as many sessions, with and without the evidence."""

from __future__ import annotations

import polars as pl
import pytest
from stale.nothing import exchange, main

from tests.small import LIVES, lives

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("alone", [False, True])
def test_each_question_has_a_twin_of_equal_size_without_its_evidence(alone: bool) -> None:
    tables = lives().load()
    if alone:  # in its haystack, with another one to take sessions from
        tables = tables.updated({"gold": tables["gold"].with_columns(scored=pl.col("question") == 0)})
    made = exchange(tables)
    asked = tables["gold"].filter("scored").height
    assert made["questions"].height == 2 * asked == made["questions"]["corpus"].n_unique()
    sizes = made["sessions"].group_by("corpus").len().sort("corpus")["len"].to_list()
    assert sizes[::2] == sizes[1::2]
    evidence = tables["evidence"].filter(question=0)
    said = tables["turns"].filter(corpus=0).join(evidence, on=["session", "turn"], how="semi")
    here = [made["turns"].filter(corpus=n)["text_id"].is_in(said["text_id"].implode()).sum() for n in (0, 1)]
    assert here[0] > here[1] == 0
    assert exchange(tables)["turns"].equals(made["turns"])


def test_the_script_prints_the_error_of_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    main([*LIVES, "search/dense=none", "at=0"])
    assert "threshold 0: refused 0.000 of the answerable questions, 0.000 of the others" in capsys.readouterr().out
