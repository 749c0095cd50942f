"""Stages: configuration maps one to one onto validated fields; a specification holds all that matters."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field, ValidationError

from memlab.learn.coverage import CrossFitCoverage, LearnedK
from memlab.learn.probability import CrossFitProbability, LoadedProbability, Marginal
from memlab.pipeline.stage import (
    Declaration,
    EmptyStage,
    LocalPath,
    Names,
    classes_of,
    declaration,
    learns,
    name_of,
    spec,
    spec_digest,
    stage,
)
from memlab.stages.oracle.upper_bounds import OracleSelect
from memlab.stages.rank.select import Fixed


@stage
class Toy:
    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    k: Annotated[int, Field(ge=1)] = 10
    roles: Names = ("user",)
    path: LocalPath | None = None


class Model:
    def identity(self) -> dict[str, Any]:
        return {"weights": "abc"}


def test_unknown_fields_loose_types_and_ranges_are_refused_together() -> None:
    with pytest.raises(ValidationError) as error:
        Toy(k=0, roles=5, colour="red")
    assert {e["loc"][0] for e in error.value.errors()} >= {"k", "roles"}
    with pytest.raises(ValidationError):
        Toy(k=True)


def test_lists_and_strings_come_from_yaml() -> None:
    toy = Toy(roles=["user", "assistant"], path="/tmp/x")
    assert toy.roles == ("user", "assistant")
    assert toy.path == Path("/tmp/x")


def test_spec_names_class_and_fields_and_lets_models_speak() -> None:
    assert spec(Toy(k=3))["k"] == 3
    assert spec(Toy())["is"].endswith("Toy")
    assert spec_digest(Toy(k=3)) == spec_digest(Toy(k=3)) != spec_digest(Toy(k=4))
    assert spec({"m": Model()}) == {"m": {"weights": "abc"}}


def test_a_class_declares_for_itself_alone() -> None:
    @stage
    class Heir(OracleSelect):
        pass

    assert declaration(OracleSelect()) == Declaration(sees=("gold",))
    assert declaration(Heir()) == declaration(Fixed()) == Declaration()


def test_a_stage_learns_unless_its_fit_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert learns(LearnedK(coverage=CrossFitCoverage()))
    assert learns(Marginal(probability=CrossFitProbability()))
    assert not learns(OracleSelect())
    monkeypatch.setattr("memlab.learn.probability.load", lambda path: None)
    assert not learns(Marginal(probability=LoadedProbability(path=Path("fit.json"))))


def test_only_classes_of_memlab_have_names_without_a_place() -> None:
    assert name_of(Fixed) == "memlab.Fixed"
    assert name_of(Toy) == f"{__name__}.Toy"
    assert spec(Fixed())["is"] == "memlab.Fixed"


def test_what_a_run_leaves_in_a_part_is_no_part_of_its_classes() -> None:
    @dataclasses.dataclass(frozen=True)
    class Model:
        made: list[Any] = dataclasses.field(default_factory=list, compare=False)

    model = Model()
    before = set(classes_of(model))
    model.made.append(EmptyStage())
    assert set(classes_of(model)) == before
