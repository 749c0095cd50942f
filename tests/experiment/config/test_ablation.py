"""Ablation: one part of a system taken out, or put into the plain baseline; nothing else differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.experiment.config import ablation
from memlab.experiment.harness.sweep import PLACES, read
from memlab.pipeline.pipeline import Pipeline
from memlab.support.errors import Faults
from tests.small import LIVES

pytestmark = pytest.mark.slow

WORDS = ("system=best", "track=none", *LIVES)


def pipeline(*words: str) -> Pipeline:
    (one,) = read([*WORDS, *words]).arms
    return one.pipeline


def differing(one: Pipeline, other: Pipeline) -> set[str]:
    return {slot for slot, stage in one.stages() if stage != getattr(other, slot)}


def test_a_part_taken_out_is_the_plain_ones() -> None:
    whole, plain, without = pipeline(), pipeline("ablate=plain"), pipeline("ablate=whole-search")
    assert differing(whole, plain) == {"chunk", "dense", "lexical", "late", "score"}
    assert differing(without, whole) == {"dense", "lexical", "late", "score"}
    assert differing(without, plain) == {"chunk"}


def test_a_part_put_in_is_the_systems() -> None:
    assert differing(pipeline("ablate=plain+chunk"), pipeline("ablate=plain")) == {"chunk"}
    assert pipeline("ablate=plain+chunk").chunk == pipeline().chunk


def test_an_arm_of_an_ablation_is_named_by_its_word() -> None:
    for word in ("plain", "plain+chunk", "whole-chunk"):
        assert [arm.name for arm in read([*WORDS, f"ablate={word}"], multirun=True).arms] == [f"best+{word}"]


def test_other_words_of_the_line_hold_on_both_sides() -> None:
    kept: Any = pipeline("ablate=plain+chunk", "rank.select.k=3").select
    assert kept.k == 3


def test_parts_that_a_system_has_not_are_left_out_and_said() -> None:
    swaps = "whole,plain,whole-chunk,whole-anchor,plain+chunk,plain+anchor,plain+score"
    sweep = read([*WORDS, f"ablate={swaps}"], multirun=True)
    assert [arm.name for arm in sweep.arms] == ["whole", "plain", "whole-chunk", "plain+chunk"]
    assert sweep.left_out["whole-anchor"] == "the same settings as whole"
    assert sweep.left_out["plain+anchor"] == "the same settings as plain"
    assert "weights name 'late'" in sweep.left_out["plain+score"]


@pytest.mark.parametrize(("word", "says"), [
    ("whole-rernk", "there is no part 'rernk'; did you mean 'rerank'?"),
    ("whole+chunk", "expected whole, plain, whole-PART or plain+PART"),
    ("half", "expected whole, plain, whole-PART or plain+PART"),
])
def test_a_word_that_says_nothing_is_a_fault(word: str, says: str) -> None:
    with pytest.raises(Faults, match="ablate=") as told:
        pipeline(f"ablate={word}")
    assert says in str(told.value)


def test_without_a_system_there_is_nothing_to_take_apart() -> None:
    with pytest.raises(Faults, match="write system=NAME beside it"):
        read(["track=none", *LIVES, "ablate=whole-chunk"])


def test_every_part_is_a_place_that_a_slot_is_built_from(tmp_path: Path) -> None:
    places = {place for several in ablation.PARTS.values() for place in several}
    assert places - {"read.prompt"} <= set(PLACES.values())
