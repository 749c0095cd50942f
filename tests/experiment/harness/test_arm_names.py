"""An arm is named by what its arguments change."""

from __future__ import annotations

import pytest

from memlab.experiment.config.compose import compose
from memlab.experiment.harness.sweep import arm_name

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("words", "name"), [
    (["search.dense.depth=10"], "dense.depth=10"), (["search.lexical.depth=10"], "lexical.depth=10"),
    (["write/chunk=round"], "chunk=round"), (["read/measure=round"], "measure=round"), (["system=best"], "best"),
    (["rank.select.k=1_0"], "k=10"), (["rank/select=fixed_5", "~rank.select.k"], "fixed_5+k=10"),
    (["rank/select=gap", "rank.select.buffer=2", "search/dense=none"], "gap+buffer=2+dense=none"),
    (["search/dense=none", "data.limit=3", "out=x", "seed=4"], "dense=none")])
def test_a_name_says_which_setting_and_which_value(words: list[str], name: str) -> None:
    configs, faults = compose(words, False)
    assert configs is not None
    assert faults == []
    assert arm_name(configs.base, configs.overrides, []) == name
