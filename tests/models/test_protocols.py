"""Models are found in every part of a stage, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from memlab.models.protocols import models_in
from memlab.stages.rank.rerank import Rerank
from memlab.stages.search.dense import Dense
from memlab.stages.write.chunk import Levels, TurnChunker
from tests.stages.search.world import Overlap, WordEmbedder


@dataclass(frozen=True)
class Lazy:
    """Makes its scorer when it is asked for it."""

    path: str = "here"

    @property
    def scorer(self) -> Overlap:
        return Overlap()


@dataclass(frozen=True)
class Wrapped:
    parts: tuple[object, ...]
    named: dict[str, object]


def test_models_are_found_in_stages_and_the_stages_inside_them() -> None:
    embedder, scorer = WordEmbedder(), Overlap()
    assert list(models_in(Dense(embedder=embedder))) == [embedder]  # its index has an identity, and is no model
    parts = Wrapped((TurnChunker(), Rerank(scorer=scorer)), {"x": Dense(embedder=embedder)})
    assert list(models_in(parts)) == [embedder, scorer]
    assert list(models_in(Lazy())) == [Overlap()]
    assert list(models_in(Levels(chunkers=[TurnChunker()]))) == []
    assert list(models_in(None)) == []
