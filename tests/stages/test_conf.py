"""Every technique of query, search, write/context, rank and learn makes its stage; none of rank sees gold."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import pytest
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

import memlab.stages.rank
from memlab.pipeline.stage import Stage, declaration
from memlab.pipeline.tables import GOLD
from tests.choices import choices_of, composed

GIVEN = ["+embedder._target_=memlab.models.local.embedder.SentenceEmbedder",
         "+cross_encoder._target_=memlab.models.local.late_interaction.LateInteraction",
         "+cross_encoder.embedder=${embedder}", "+seed=0", "+learn.folds=5", "+learn.by=auto",
         "+chat._target_=memlab.models.chat.openai.OpenAIChat", "+chat.model=some",
         "++search.lexical._target_=memlab.stages.search.bm25.BM25",
         "++search.dense._target_=memlab.stages.search.bm25.BM25Okapi",
         "++rank.score._target_=memlab.learn.ranker.stage.LearnedScore",
         "++learn.coverage._target_=memlab.learn.coverage.CrossFitCoverage",
         "++learn.probability._target_=memlab.learn.probability.CrossFitProbability"]


@pytest.mark.parametrize("name", choices_of("query", "search", "write/context", "rank", "learn"))
def test_a_choice_makes_its_stage_with_settings_of_its_class(name: str) -> None:
    slot = ".".join(name.split("/")[:-1])
    node = OmegaConf.select(composed(name, *(word for word in GIVEN if not word.startswith(f"++{slot}."))), slot)
    for part in (node, node.get("index", {})):
        known = {field.name for field in dataclasses.fields(get_class(part["_target_"]))} if part else set()
        assert set(part) - {"_target_"} <= known
    if name == "query/where/filter":
        node["only"] = {"role": "user"}
    if OmegaConf.missing_keys(node):
        return
    made = instantiate(node, _convert_="all")
    assert isinstance(made, Stage)
    if not name.startswith("learn/"):
        assert not GOLD & {*made.reads, *made.writes} or declaration(made).sees
        assert "ids" not in made.reads


def stages_of(package) -> list[type]:
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return [c for m in modules for c in vars(m).values()
            if isinstance(c, type) and c.__module__ == m.__name__ and hasattr(c, "reads")]


@pytest.mark.parametrize("stage", stages_of(memlab.stages.rank), ids=lambda c: c.__name__)
def test_no_stage_of_rank_may_see_gold(stage: type) -> None:
    assert not GOLD & {*stage.reads, *stage.writes}
