from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from safetensors.numpy import load_file

from memlab.errors import DiskFault, MemlabError
from memlab.learn import reranker
from memlab.learn.__main__ import main as train_main
from memlab.learn.cross_fit_rerank import read
from memlab.learn.recipe import PairRecipe, TrainingRecipe
from memlab.learn.sources import make_examples
from memlab.store import Store
from tests.faults.limits import largest_file
from tests.learn.small_models import LEXICAL, lives, tiny
from tests.small import with_words

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("base"))


WORDS = ["data.lives=4", "data.sessions=15", "data.questions=8", "search/dense=none", "store=null"]


def train(folder: Path, base: Path, watch=None, **fields) -> dict:
    settings = {"limit": 12, "epochs": 1, "batch": 4, "negatives": 2, **fields}
    return reranker.train(TrainingRecipe(out_model=folder, base=base, **settings),
                          [] if "pairs" in fields else WORDS, watch)


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def same(one: Path, two: Path) -> bool:
    a, b = weights(one), weights(two)
    return a.keys() == b.keys() and all(np.array_equal(a[n], b[n]) for n in a)


def test_training_is_repeatable_by_seed_and_resumes_to_the_same_weights(base: Path, tmp_path: Path) -> None:
    class Cut(Exception):
        pass

    def cut(step: int, loss: float) -> None:
        if step == 1:
            raise Cut

    first = train(tmp_path / "a", base)
    assert first["counts"]["steps"] == 3
    with pytest.raises(Cut):
        train(tmp_path / "b", base, cut, checkpoint_seconds=0)
    assert not (tmp_path / "b").exists()  # unfinished work is no model
    taken: list[int] = []
    second = train(tmp_path / "b", base, lambda step, _: taken.append(step), checkpoint_seconds=0)
    assert taken == [1, 2]  # the step in which it was cut has no checkpoint
    assert same(tmp_path / "a", tmp_path / "b")
    assert second["losses"] == first["losses"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    train(tmp_path / "c", base, seed=1)
    assert not same(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize("checkpoint_seconds", [0, 600])
def test_a_full_disk_names_the_model_and_the_same_recipe_goes_on(base: Path, tmp_path: Path, checkpoint_seconds: int
                                                                 ) -> None:
    folder = tmp_path / "model"
    with largest_file(4000), pytest.raises(DiskFault, match=f"^{folder}.*cannot be written: the "):
        train(folder, base, checkpoint_seconds=checkpoint_seconds)
    assert not folder.exists()
    assert not list(tmp_path.glob(".*"))
    train(folder, base, checkpoint_seconds=checkpoint_seconds)
    train(tmp_path / "other", base)
    assert same(folder, tmp_path / "other")


def test_a_finished_model_returns_at_once_and_another_is_not_overwritten(base: Path, tmp_path: Path) -> None:
    first = train(tmp_path / "a", base)

    def never(step: int, loss: float) -> None:
        raise AssertionError("trained again")

    assert train(tmp_path / "a", base, never) == json.loads(json.dumps(first, default=str)) | {
        "format": "memlab-reranker-1"}
    with pytest.raises(MemlabError, match="another configuration"):
        train(tmp_path / "a", base, never, epochs=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(MemlabError, match="holds something else"):
        train(tmp_path / "mine", base, never)


def test_the_record_tells_what_was_learnt_and_what_was_not(base: Path, tmp_path: Path) -> None:
    made = train(tmp_path / "a", base, fold="1/2")
    record = read(tmp_path / "a")
    assert record.held_out == frozenset(made["held_out"])
    texts = lives()["questions"]
    assert len(made["held_out"]) == made["counts"]["held_out"] == texts.height / 2
    assert made["data"]["benchmark"] == "synthetic"
    assert str(tmp_path) not in (tmp_path / "a" / "training.json").read_text()
    train(tmp_path / "b", base)
    assert read(tmp_path / "b").fold == "all"
    assert read(tmp_path / "b").learnt == frozenset(texts["text_id"])
    (tmp_path / "a" / "training.json").write_text('{"format": "memlab-rer')
    with pytest.raises(MemlabError, match="is not a reranker's record"):
        read(tmp_path / "a")
    with pytest.raises(MemlabError, match="No such file"):
        read(tmp_path)


def test_examples_of_files_train_it_and_their_questions_count_as_learnt(base: Path, tmp_path: Path) -> None:
    files = {tmp_path / f"{seed}.jsonl": times for seed, times in ((0, 1), (1, .5))}
    for number, file in enumerate(files):
        assert train_main(["pairs", *WORDS[:-1], f"store={tmp_path}/s", f"file={file}", "limit=6", "fold=1/2",
                           f"seed={number}"]) == 0
    made = train(tmp_path / "m", base, pairs=files, limit=None)
    assert made["counts"]["examples"] == 6 + 3
    assert [(source["file"], source["times"]) for source in made["sources"]] == [("0.jsonl", 1), ("1.jsonl", .5)]
    record = read(tmp_path / "m")
    assert (record.fold, record.held_out) == ("all", frozenset())
    assert len(record.learnt) == made["counts"]["questions"]
    assert not record.may_score("any key", next(iter(record.learnt)))
    assert record.may_score("any key", "another text")


def test_the_best_step_is_kept(base: Path, tmp_path: Path) -> None:
    made = train(tmp_path / "m", base, fold="1/2", epochs=3, rate=.02)  # two corpora: one learns, one chooses
    kept = made["kept_step"]
    assert (kept["groups"], kept["step"]) == (1, min(kept["evaluations"], key=lambda pair: pair[1])[0])


def test_the_command_line(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data.lives=3", "data.sessions=12", "data.questions=6", "search/dense=none", f"base={base}",
             f"out_model={tmp_path / 'm'}", "fold=1/3", "limit=4", "batch=2", "epochs=1", f"store={tmp_path / 's'}"]
    assert reranker.main(words) == 0
    assert "6 questions held out" in capsys.readouterr().out
    assert reranker.main(with_words(["epochs=2"], *words)) == 1  # the folder is another model's
    assert "delete this one" in capsys.readouterr().err
    assert reranker.main(["epocs=1", "data=locmo"]) == 2
    assert "did you mean 'epochs'" in capsys.readouterr().err
    assert reranker.main(["out_model=x", "data=locmo"]) == 2
    assert "did you mean 'locomo'" in capsys.readouterr().err
    assert reranker.main(["out_model=x", "epochs=0", "fold=3"]) == 2
    assert "epochs" in capsys.readouterr().err
    assert reranker.main(["--help"]) == 0


def test_what_cannot_work_is_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValidationError, match="k/n"):
        TrainingRecipe(out_model=tmp_path, fold="4/3")
    with pytest.raises(ValidationError, match="no model folder"):
        TrainingRecipe(out_model=tmp_path, base=tmp_path / "gone")
    assert reranker.main(["data=synthetic"]) == 2
    assert "out_model: Field required" in capsys.readouterr().err
    blind = lives().updated({"evidence": lives()["evidence"].head(0)})
    with pytest.raises(MemlabError, match="no question has an evidence turn"):
        make_examples(blind, LEXICAL, PairRecipe(), Store())
    with pytest.raises(ValidationError, match="device"):
        TrainingRecipe(out_model=tmp_path / "m", base=base, device="gpu")


def test_the_device_is_no_part_of_what_was_trained(base: Path, tmp_path: Path) -> None:
    """A finished model is found again on a machine whose GPU has another number, or none."""
    steps: list[int] = []
    first = train(tmp_path / "m", base)
    again = train(tmp_path / "m", base, lambda step, loss: steps.append(step), device="cpu")
    assert again["mark"] == first["mark"]
    assert steps == []
    assert "device" not in first["recipe"]
