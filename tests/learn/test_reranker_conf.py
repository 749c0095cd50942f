"""The experiment's files: arms that share a pool, and need weights only where they say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.config.instantiate import options
from memlab.errors import Faults
from memlab.harness.sweep import read
from memlab.learn.cross_fit_rerank import CrossFitRerank, write
from memlab.rank.rerank import Rerank
from tests.learn.small_models import tiny

pytestmark = pytest.mark.slow

ARMS = options("arm/rerank")


def test_without_weights_the_experiment_has_two_arms() -> None:
    sweep = read(["+exp=rerank"])
    assert [a.name for a in sweep.arms] == ["none", "late_interaction"]
    assert sweep.arms[1].pipeline.rerank.pool == 30
    assert len(sweep.contrasts) <= 3


def test_every_arm_has_the_same_pool_and_its_own_opinion(tmp_path: Path) -> None:
    write(tiny(tmp_path / "m"), {"fold": "all", "held_out": [], "learnt": []})
    sweep = read(["+exp=rerank", f"+arm/rerank={','.join(ARMS)}", f"learn.reranker.paths=[{tmp_path / 'm'}]",
                  "learn.reranker.pool=7"])
    stages = {a.name: a.pipeline.rerank for a in sweep.arms}
    assert sorted(stages) == ARMS
    assert {s.pool for name, s in stages.items() if name != "none"} == {7}
    fitted = {name: s for name, s in stages.items() if isinstance(s, CrossFitRerank)}
    assert {name: s.question for name, s in fitted.items()} == {
        "cross_encoder": "asked", "cross_encoder_alone": "asked", "blank_question": "blank",
        "blank_question_mixed": "blank",
        "wrong_question": "wrong"}
    late, mixed = stages["late_interaction"], stages["cross_encoder"]
    assert isinstance(late, Rerank)
    assert late.weights == mixed.weights == {"rerank": 1.0, "first": 1.0}
    assert len({a.digest() for a in sweep.arms}) == len(ARMS)


def test_an_arm_with_weights_says_how_to_get_them() -> None:
    with pytest.raises(Faults, match="memlab train reranker"):
        read(["+exp=rerank", "+arm/rerank=none,cross_encoder"])
