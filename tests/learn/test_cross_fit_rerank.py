from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.learn.cross_fit_rerank import BlankQuestion, Chance, CrossFitRerank, write
from memlab.learn.pairs import split
from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.protocols import PairScorer
from memlab.pipeline.stage import spec_digest
from memlab.pipeline.tables import Tables
from memlab.stages.rank.rerank import Rerank
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.learn.small_models import lives, ranked
from tests.models.scores import pair_scores
from tests.stages.search.world import Overlap

pytestmark = pytest.mark.slow


def model(folder: Path, base: Path, tables: Tables, fold: str, shift: float = 0.0) -> Path:
    """A folder as training leaves it: fold k's weights differ from fold j's in the head."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(base, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.bias"] = tensors["classifier.bias"] + np.float32(shift)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    parted = split(tables, fold)
    write(folder, {"fold": fold, "held_out": parted.held_out["key"].to_list(),
                   "learnt": sorted(set(parted.train["text_id"]))})
    return folder


@pytest.fixture(scope="module")
def folds(tiny_reranker: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    home = tmp_path_factory.mktemp("folds")
    return [model(home / f"{k}", tiny_reranker, lives(), f"{k}/2", shift=100.0 * k) for k in (1, 2)]


def run(stage, tables: Tables | None = None) -> pl.DataFrame:
    return stage.run((tables or ranked()).only(stage.reads), Store())["ranking"]


def test_each_question_is_scored_by_the_model_that_held_it_out(folds: list[Path]) -> None:
    got = run(CrossFitRerank(paths=folds, pool=3))
    for k, folder in enumerate(folds, 1):
        mine = split(lives(), f"{k}/2").held_out
        assert mine.height
        alone = run(Rerank(scorer=CrossEncoderScorer(path=folder), pool=3, name="cross_encoder"))
        assert got.join(mine, on="question", how="semi").equals(alone.join(mine, on="question", how="semi"))
    assert got.sort("question", "rank").equals(got)
    assert got.height == ranked()["ranking"].height
    assert run(CrossFitRerank(paths=folds[::-1], pool=3)).equals(got)  # the order of the folders is nothing


def test_a_question_that_may_have_been_learnt_is_refused(folds: list[Path], tiny_reranker: Path, tmp_path: Path
                                                         ) -> None:
    with pytest.raises(MemlabError, match="held out of none of these models"):
        run(CrossFitRerank(paths=folds[:1]))
    everything = model(tmp_path / "all", tiny_reranker, lives(), "all")
    with pytest.raises(MemlabError, match="32 of 32 questions"):
        run(CrossFitRerank(paths=[everything]))


def test_a_wrong_question_is_routed_by_the_right_one(folds: list[Path]) -> None:
    got = run(CrossFitRerank(paths=folds, pool=3, question="wrong"))
    right = run(CrossFitRerank(paths=folds, pool=3))
    first = pl.col("rank") == 1
    for k in (1, 2):  # the heads of the two models lie 100 apart
        mine = split(lives(), f"{k}/2").held_out
        here = got.filter(first).join(mine, on="question", how="semi")["cross_encoder"]
        assert here.is_between(100 * k - 20, 100 * k + 20).all()
    assert not got["cross_encoder"].equals(right["cross_encoder"])
    assert run(CrossFitRerank(paths=folds, pool=3, question="wrong")).equals(got)


def test_the_identity_is_of_content_not_place(folds: list[Path], tmp_path: Path) -> None:
    moved = [Path(shutil.copytree(f, tmp_path / f.name)) for f in folds]
    one = spec_digest(CrossFitRerank(paths=folds))
    assert spec_digest(CrossFitRerank(paths=moved)) == one
    assert spec_digest(CrossFitRerank(paths=folds, question="blank")) != one
    assert spec_digest(CrossFitRerank(paths=folds[:1])) != one


def test_what_cannot_work_is_refused_when_it_is_made(tiny_reranker: Path, tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="no model is given"):
        CrossFitRerank(paths=[])
    with pytest.raises(MemlabError, match="takes models from elsewhere"):
        CrossFitRerank(paths=[tiny_reranker])
    with pytest.raises(MemlabError, match=r"training\.json"):
        CrossFitRerank(paths=[tmp_path / "gone"])


def test_chance_is_even_and_the_same_in_any_company() -> None:
    questions, passages = ["q", "r"], [f"p{i}" for i in range(500)]
    pairs = np.array([(q, p) for q in range(2) for p in range(500)])
    (_, numbers), = Chance().score(questions, passages, pairs)
    assert numbers.mean() == pytest.approx(.5, abs=.05)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    (_, few), = Chance().score(["r"], ["p7"], np.array([(0, 0)]))
    assert few[0] == numbers[507]
    (_, other), = Chance(seed=1).score(questions, passages, pairs)
    assert abs(np.corrcoef(numbers, other)[0, 1]) < .2
    assert isinstance(Chance(), PairScorer)


def test_the_control_shows_no_question_and_scores_each_passage_once() -> None:
    asked: list[tuple[str, str]] = []

    class Counting(Overlap):
        def score(self, queries, passages, pairs):  # type: ignore[no-untyped-def]
            for i, (q, p) in enumerate(pairs):
                asked.append((queries[q], passages[p]))
                yield np.array([i]), np.array([len(passages[p])], np.float32)

    control, passages = BlankQuestion(scorer=Counting()), ["a", "bb", "ccc"]
    pairs = np.array([(0, 2), (1, 0), (1, 2), (0, 0)])
    assert pair_scores(control, ["what is it", "who"], passages, pairs).tolist() == [3, 1, 3, 1]
    assert sorted(asked) == [("", "a"), ("", "ccc")]
    assert isinstance(control, PairScorer)
    assert spec_digest(control) != spec_digest(Counting())
    assert list(control.score([], [], np.zeros((0, 2), np.int64))) == []
