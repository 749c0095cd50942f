"""Every technique of rank and learn makes its stage, and no stage here but an oracle sees gold."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from pathlib import Path

import pytest
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

import memlab.stages.oracle
import memlab.stages.rank
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import GOLD
from tests.choices import choices_of, composed

GIVEN = ["+embedder._target_=memlab.models.local.embedder.SentenceEmbedder",
          "+cross_encoder._target_=memlab.models.local.late_interaction.LateInteraction",
          "+cross_encoder.embedder=${embedder}", "+seed=0", "+learn.folds=5", "+learn.by=auto",
          "+chat._target_=memlab.models.chat.openai.OpenAIChat", "+chat.model=some",
         "++rank.score._target_=memlab.learn.ranker.stage.LearnedScore",
         "++learn.coverage._target_=memlab.learn.coverage.CrossFitCoverage",
         "++learn.probability._target_=memlab.learn.probability.CrossFitProbability"]


def stages_of(package) -> list[type]:
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return [c for m in modules for c in vars(m).values()
            if isinstance(c, type) and c.__module__ == m.__name__ and hasattr(c, "reads")]


@pytest.mark.parametrize("name", choices_of("rank", "learn"))
def test_a_choice_makes_its_stage_with_settings_of_its_class(name: str, tmp_path: Path) -> None:
    given = [g for g in GIVEN if not g.startswith(f"++{'.'.join(name.split('/')[:2])}.")]
    whole = composed(name, *given)
    node = OmegaConf.select(whole, ".".join(name.split("/")[:-1]))
    assert set(node) - {"_target_"} <= {f.name for f in dataclasses.fields(get_class(node["_target_"]))}
    if not OmegaConf.missing_keys(node):
        assert isinstance(instantiate(node, _convert_="all"), Stage)


@pytest.mark.parametrize("stage", stages_of(memlab.stages.rank), ids=lambda c: c.__name__)
def test_no_stage_of_rank_may_see_gold(stage: type) -> None:
    assert not GOLD & {*stage.reads, *stage.writes}
