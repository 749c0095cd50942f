from __future__ import annotations

import pytest
from pydantic import ValidationError

from memlab.oracle.upper_bounds import OracleClasses
from memlab.pipeline import Pipeline
from memlab.question_types import OF_TYPE, VOCABULARY
from memlab.stage import EmptyStage
from memlab.store import Store
from memlab.tables import Tables, frame


def told(stage: OracleClasses, *types: str | None) -> list[tuple[int, str]]:
    tables = Tables(questions=frame("questions", {"question": range(len(types))}),
                    gold=frame("gold", {"question": range(len(types)), "category": types}).reverse())
    return stage.run(tables.only(stage.reads), Store())["classes"].rows()


def test_the_types_of_the_benchmarks_have_their_classes() -> None:
    assert told(OracleClasses(), "knowledge-update", "multi-hop", "single-session-user", "temporal") == [
        (0, "update"), (1, "multi_session"), (2, "factual"), (3, "temporal")]


def test_a_type_that_nobody_mapped_is_otherwise_and_types_can_be_mapped() -> None:
    assert told(OracleClasses(otherwise="general"), "recipes", None, "adversarial") == [
        (0, "general"), (1, "general"), (2, "general")]
    assert told(OracleClasses(classes={"recipes": "procedural", "multi-hop": "counting"}), "recipes", "multi-hop") == [
        (0, "procedural"), (1, "counting")]


def test_a_class_must_be_in_the_vocabulary() -> None:
    with pytest.raises(ValidationError, match="'conting', given for 'recipes', is no class.*counting"):
        OracleClasses(classes={"recipes": "conting"})
    assert {*OF_TYPE.values()} <= set(VOCABULARY)


def test_an_arm_that_is_told_the_types_is_an_upper_bound() -> None:
    assert Pipeline(dense=EmptyStage(writes=("hits",)), classify=OracleClasses()).uses_oracle()
    assert not Pipeline(dense=EmptyStage(writes=("hits",))).uses_oracle()
