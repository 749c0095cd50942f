"""Readers of learned models on files that are almost right: a model that can be applied, or a MemlabError."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from memlab.learn import cross_fit_rerank as record
from memlab.learn.ranker import model as ranker
from memlab.models.local import adapter, base
from memlab.support.errors import MemlabError
from tests.fuzz.mutation import as_json, damaged, fuzz, mutated, outcome
from tests.learn.test_fits import KINDS, saved

pytestmark = pytest.mark.slow

TREE = {"split_feature": [0, 1], "threshold": [0.5, 1.5], "decision_type": [2, 2], "left_child": [1, -1],
        "right_child": [-2, -3], "leaf_value": [0.1, -0.2, 0.3]}
RANKER = {"format": ranker.FORMAT, "level": "turn", "depth": 20, "features": ["good", "noise"], "trees": [TREE],
          "recipe": dataclasses.asdict(ranker.Recipe()), "data": ["lives"], "questions": 60, "gains": [1.0, 0.5],
          "sessions": {"features": ["best learned"], "mean": [0.0], "scale": [1.0], "weights": [1.5]}, "behind": None}
RECORD = {"format": record.FORMAT, "fold": 0, "held_out": ["ab", "cd"], "learnt": ["ef"], "losses": [0.5]}
CANDIDATES = pl.DataFrame({"question": [0, 0, 1], "unit": [0, 1, 2], "good": [0.1, 2.0, math.nan],
                           "noise": [1e300, 0.0, -1.0]})


def write(folder: Path, content: bytes, name: str = "fit.json") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@fuzz
@given(as_json(mutated(RANKER)))
def test_ranking_models(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    found = outcome(lambda: ranker.load(path))
    if isinstance(found, ranker.RankModel) and set(found.features) <= set(CANDIDATES.columns):
        assert np.isfinite(outcome(lambda: ranker.apply(found, CANDIDATES))).all()


@fuzz
@given(as_json(st.sampled_from(sorted(KINDS)).flatmap(lambda kind: mutated(saved(kind)))))
def test_fits_of_coverage_and_probability(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    for _, loaded, _ in KINDS.values():
        stage: Any = outcome(lambda loaded=loaded: loaded(path=path))
        for found in [] if isinstance(stage, MemlabError) else stage.fits():
            estimates = found.estimates(np.linspace(-3, 3, 2 * len(found.FEATURES)).reshape(2, -1))
            assert ((estimates >= 0) & (estimates <= 1)).all()


@fuzz
@given(as_json(mutated(RECORD)))
def test_records_of_rerankers(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, content, record.FILE)
    found: Any = outcome(lambda: record.read(tmp_path))
    if isinstance(found, record.TrainingRecord):
        assert found.may_score("ab", "text") in (True, False)
        assert all(isinstance(key, str) for key in found.learnt | found.held_out)


def tensors_of(content: bytes) -> bytes:
    """Return an update whose card and whose first numbers are this content."""
    numbers = np.frombuffer(content[:96].ljust(96, b"\0"), np.float16)
    arrays = {"layer.weight.up": numbers[:12].reshape(6, 2), "layer.weight.down": numbers[12:24].reshape(2, 6),
              "layer.bias.add": numbers[24:30], adapter.PROJECTION: numbers[30:42].reshape(2, 6)}
    return save(arrays, {"card": content.decode("utf-8", "replace")})


class Weights:
    """The named weights of a model that an update may change."""

    def named_parameters(self) -> list[tuple[str, torch.Tensor]]:
        return [("layer.weight", torch.ones(6, 6)), ("layer.bias", torch.ones(6))]


@fuzz
@given(damaged(as_json(mutated({"base": "ab", "rank": 2, "dimensions": None})).map(tensors_of)))
def test_updates_of_encoders(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content, "u.safetensors")
    card: Any = outcome(lambda: adapter.update_card(path))
    found: Any = outcome(lambda: adapter.apply_update(Weights(), path, width=6))
    if isinstance(card, adapter.UpdateCard):
        assert card.base is None or isinstance(card.base, str)
        assert isinstance(found, MemlabError) or card.dimensions == (None if found is None else len(found))
    else:
        assert str(card) == str(found)
        assert "\n" not in str(card)


@fuzz
@given(as_json(mutated([{"path": "", "type": "Transformer"}, {"path": "1_Dense", "type": "pylate.models.Dense"}])),
       as_json(mutated({"in_features": 32, "out_features": 12})),
       as_json(mutated({"architectures": ["HF_ColBERT"], "model_type": "ColBERT", "query_prefix": "[Q]", "dim": 12})))
def test_files_of_colbert_models(tmp_path: Path, modules: bytes, dense: bytes, config: bytes) -> None:
    (tmp_path / "1_Dense").mkdir(exist_ok=True)
    write(tmp_path / "1_Dense", dense, "config.json")
    write(tmp_path, modules, "modules.json")
    for name in ("config.json", "config_sentence_transformers.json", "artifact.metadata"):
        write(tmp_path, config, name)
    base.is_colbert.cache_clear()
    assert isinstance(base.is_colbert(tmp_path), bool)
    width = base.projected_width(tmp_path)
    assert width is None or width > 0
