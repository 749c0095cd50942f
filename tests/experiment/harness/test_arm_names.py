"""An arm's name and its configuration agree."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from memlab.experiment.config.compose import compose
from memlab.experiment.config.instantiate import resolve_plain
from memlab.experiment.harness.sweep import arm_name, read
from tests.examples import fewer

pytestmark = pytest.mark.slow

VALUES = {
    "rank.select.k": ["5", "10", "1_0", "++"], "search.dense.depth": ["10", "20"], "search.lexical.depth": ["10", "20"],
    "write/chunk": ["turn", "round", "session"], "read/measure": ["turn", "round", "session"],
    "rank/rollup": ["none", "max"], "rank/rerank": ["none", "oracle"],
    "embedder.max_length": ["64", "128"], "search.lexical.k1": ["1.5", "1.50", "9e-1"],
    "write.chunk.roles": ["[user]", "[assistant]"]}
"""Settings and slots, and values that may be written for them; ``++`` stands for a value with that prefix."""


@st.composite
def lines(draw: st.DrawFn, most: int = 4) -> list[str]:
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=most, unique=True))
    words = []
    for key in keys:
        value = draw(st.sampled_from(VALUES[key]))
        words.append(f"++{key}=7" if value == "++" else f"{key}={value}")
    return words


def named(words: list[str]) -> tuple[str, dict[str, object]]:
    """Name and plain configuration, without what a single arm's name leaves out."""
    configs, faults = compose(words, False)
    assert configs is not None
    if faults:  # a setting that the chosen technique does not have
        return json.dumps(words), {"refused": words}
    return arm_name(configs.base, []), resolve_plain(configs.base, ["hydra", "seed"])


@fewer(20, phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # each example composes command lines
@given(st.lists(lines(), min_size=2, max_size=4))
def test_arms_of_one_name_have_one_configuration(many: list[list[str]]) -> None:
    seen: dict[str, dict[str, object]] = {}
    for line in [*many, *([word] for words in many for word in words)]:
        name, config = named(line)
        assert seen.setdefault(name, config) == config


@pytest.mark.parametrize(("words", "name"), [
    (["search.dense.depth=10"], "dense.depth=10"), (["search.lexical.depth=10"], "lexical.depth=10"),
    (["write/chunk=round"], "chunk=round"), (["read/measure=round"], "measure=round"), (["system=best"], "best"),
    (["rank.select.k=1_0"], "k=10"), (["rank/select=fixed_5", "~rank.select.k"], "fixed_5+k=10")])
def test_a_name_says_which_setting_and_which_value(words: list[str], name: str) -> None:
    assert named(words)[0] == name


def test_seeds_of_a_sweep_are_named() -> None:
    arms = read(["seed=1,2", "rank/select=gap", "search/dense=none", "track=none"], True).arms
    assert [(arm.name, arm.seed) for arm in arms] == [("seed=1", 1), ("seed=2", 2)]
