from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from safetensors.numpy import load_file

from memlab.errors import MemlabError
from memlab.learn.reranker import __main__
from memlab.learn.reranker import train as train_module
from memlab.learn.reranker.config import TrainConfig
from memlab.learn.reranker.record import read
from memlab.learn.reranker.train import Trainer, TrainingSet, batches
from memlab.models.local.backend import Runtime
from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.store import Store
from tests.learn.reranker.worlds import DATA, LEXICAL, lives, tiny

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("base"))


def train(folder: Path, base: Path, watch=None, **fields) -> dict:
    settings = {"limit": 12, "epochs": 1, "batch": 4, "negatives": 2, **fields}
    config = TrainConfig(out_model=folder, base=base, **settings)
    return __main__.train(lives(), DATA.identity(), LEXICAL, config, Store(), watch)


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def same(one: Path, two: Path) -> bool:
    a, b = weights(one), weights(two)
    return a.keys() == b.keys() and all(np.array_equal(a[n], b[n]) for n in a)


def toy() -> pl.DataFrame:
    """Eight questions; the positive of one is a negative of the others."""
    words = ["piano", "garden", "soup", "train", "violin", "castle", "desk", "tiger"]
    return pl.DataFrame({
        "question": range(8),
        "query": [f"where is my {w}" for w in words],
        "positive": [f"I have a {w}" for w in words],
        "negatives": [[f"I have a {o}" for o in words if o != w] for w in words]})


def test_an_overfit_toy_is_learnt(base: Path, tmp_path: Path) -> None:
    config = TrainConfig(out_model=tmp_path / "m", base=base, negatives=3, epochs=40, batch=8, rate=3e-3, decay=0)
    told = toy().with_columns(positive="I did buy it on " + pl.col("question").cast(pl.String))
    trainer = Trainer(TrainingSet.of(told, None, 0), config)
    trainer.train(tmp_path / "c", "mark")
    assert np.mean(trainer.losses[:3]) == pytest.approx(np.log(4), abs=.25)  # at first, one of four by chance
    assert np.mean(trainer.losses[-3:]) < .3


def test_the_saved_folder_is_read_by_the_scorer_and_scores_as_it_was_trained(base: Path, tmp_path: Path) -> None:
    import torch

    config = TrainConfig(out_model=tmp_path / "m", base=base, negatives=2, epochs=1, max_length=32)
    data = TrainingSet.of(toy(), None, 0)
    trainer = Trainer(data, config)
    trainer.train(tmp_path / "c", "mark")
    trainer.save(tmp_path / "m")
    pairs = np.array([(q, p) for q in range(4) for p in range(4)])
    with torch.inference_mode():
        expected = trainer._logits(pairs[:, 0], pairs[:, 1]).numpy()
    got = np.zeros(len(pairs), np.float32)
    for at, block in CrossEncoderScorer(path=tmp_path / "m").score(data.queries, data.passages, pairs):
        got[at] = block
    assert expected.std() > 0
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert json.loads((tmp_path / "m" / "tokenizer_config.json").read_text())["model_max_length"] == 32


def test_the_loss_is_the_softmax_over_one_positive_and_its_negatives(base: Path, tmp_path: Path) -> None:
    config = TrainConfig(out_model=tmp_path / "m", base=base, negatives=3, epochs=1, batch=8, rate=1e-9)
    trainer = Trainer(TrainingSet.of(toy(), None, 0), config)
    trainer.model.eval()  # no dropout, so that the step's logits can be computed again
    rows = trainer.steps[0]
    logits = np.stack([trainer._logits(np.full(4, row[0]), row[1:]).detach().numpy() for row in rows])
    by_hand = -np.log(np.exp(logits[:, 0]) / np.exp(logits).sum(axis=1)).mean()
    assert trainer._step(0) == pytest.approx(by_hand, abs=1e-6)


def test_batches_hold_every_example_once_with_negatives_of_its_own() -> None:
    data = TrainingSet.of(toy(), None, 0)
    config = TrainConfig(out_model=Path("m"), negatives=3, batch=3)
    made = batches(data, np.arange(8), config, 0)
    assert [len(b) for b in made].count(3) == 2
    rows = np.concatenate(made)
    assert sorted(rows[:, 0]) == list(range(8))
    for row in rows:
        assert row[1] == data.positive[row[0]]
        assert set(row[2:]) <= set(data.negatives[row[0]])
        assert len(set(row[1:])) == 4
    again, other = batches(data, np.arange(8), config, 0), batches(data, np.arange(8), config, 1)
    assert all(np.array_equal(a, b) for a, b in zip(made, again))
    assert not all(np.array_equal(a, b) for a, b in zip(made, other))
    few = TrainingSet.of(toy().with_columns(pl.col("negatives").list.head(1)), 5, 0)
    assert len(few.query) == 5
    assert np.concatenate(batches(few, np.arange(5), config, 0)).shape == (5, 5)


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
    assert taken == [2]
    assert same(tmp_path / "a", tmp_path / "b")
    assert second["losses"] == first["losses"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    train(tmp_path / "c", base, seed=1)
    assert not same(tmp_path / "a", tmp_path / "c")


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


def test_a_checkpoint_of_another_training_is_not_gone_on_with(base: Path, tmp_path: Path) -> None:
    config = TrainConfig(out_model=tmp_path / "m", base=base, negatives=2, batch=4, epochs=1, checkpoint_seconds=0)
    data = TrainingSet.of(toy(), None, 0)
    Trainer(data, config).train(tmp_path / "c", "one")
    steps: list[int] = []
    Trainer(data, config).train(tmp_path / "c", "two", lambda step, _: steps.append(step))
    assert steps == [0, 1]


def test_the_record_tells_what_was_learnt_and_what_was_not(base: Path, tmp_path: Path) -> None:
    made = train(tmp_path / "a", base, fold="1/2")
    record = read(tmp_path / "a")
    assert record.held_out == frozenset(made["held_out"])
    texts = lives()["questions"]
    assert made["counts"]["questions"] + made["counts"]["held_out"] == texts.height
    assert made["data"]["benchmark"] == "synthetic"
    assert str(tmp_path) not in (tmp_path / "a" / "training.json").read_text()
    train(tmp_path / "b", base)
    assert read(tmp_path / "b").held_out is None
    assert read(tmp_path / "b").learnt == frozenset(texts["text_id"])
    (tmp_path / "a" / "training.json").write_text('{"format": "memlab-rer')
    with pytest.raises(MemlabError, match="is not a reranker's record"):
        read(tmp_path / "a")
    with pytest.raises(MemlabError, match="No such file"):
        read(tmp_path)


def test_the_command_line(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data.lives=3", "data.sessions=12", "data.questions=6", "search/dense=none", f"base={base}",
             f"out_model={tmp_path / 'm'}", "fold=1/3", "limit=4", "batch=2", "epochs=1", f"store={tmp_path / 's'}"]
    assert __main__.main(words) == 0
    assert "6 questions held out" in capsys.readouterr().out
    assert __main__.main([*words, "epochs=2"]) == 1  # the last word counts, and the folder is another model's
    assert "delete this one" in capsys.readouterr().err
    assert __main__.main(["epocs=1", "data=locmo"]) == 2
    assert "did you mean 'epochs'" in capsys.readouterr().err
    assert __main__.main(["out_model=x", "data=locmo"]) == 2
    assert "did you mean 'locomo'" in capsys.readouterr().err
    assert __main__.main(["out_model=x", "epochs=0", "fold=3"]) == 2
    assert "epochs" in capsys.readouterr().err
    assert __main__.main(["--help"]) == 0


def test_what_cannot_work_is_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValidationError, match="k/n"):
        TrainConfig(out_model=tmp_path, fold="4/3")
    with pytest.raises(ValidationError, match="no model folder"):
        TrainConfig(out_model=tmp_path, base=tmp_path / "gone")
    assert __main__.main(["data=synthetic"]) == 2
    assert "out_model: Field required" in capsys.readouterr().err
    blind = lives().updated({"evidence": lives()["evidence"].head(0)})
    with pytest.raises(MemlabError, match="no question has an evidence turn"):
        __main__.train(blind, {}, LEXICAL, TrainConfig(out_model=tmp_path / "m", base=base), Store())
    config = TrainConfig(out_model=tmp_path / "m", base=base, epochs=1, negatives=2)
    trainer = Trainer(TrainingSet.of(toy(), None, 0), config)
    trainer.model.classifier.weight.data[:] = float("nan")
    with pytest.raises(MemlabError, match="not a number"):
        trainer.train(tmp_path / "c", "mark")


def test_one_training_takes_the_device_that_is_named(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A numbered device, as each of several folds is given its own, also in bf16."""
    import torch

    placed, real = [], torch.nn.Module.to
    monkeypatch.setattr(train_module, "resolve", lambda device, *others: placed.append(device) or
                        Runtime((device.replace("cuda", "cpu"),), "fp32", "torch"))
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, device: placed.append(device) or real(module, device))
    config = TrainConfig(out_model=tmp_path / "m", base=base, negatives=2, epochs=1, precision="bf16", device="cuda:0")
    trainer = Trainer(TrainingSet.of(toy(), None, 0), config)
    trainer.train(tmp_path / "c", "mark")
    assert placed == ["cuda:0", "cpu:0"]
    assert np.isfinite(trainer.losses).all()


def test_a_gpu_that_is_not_there_is_refused(base: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    config = TrainConfig(out_model=tmp_path / "m", base=base, device="cuda:1")
    with pytest.raises(MemlabError, match="device=cuda:1, but this process sees no GPU"):
        Trainer(TrainingSet.of(toy(), None, 0), config)
    with pytest.raises(ValidationError, match="device"):
        TrainConfig(out_model=tmp_path / "m", base=base, device="gpu")


def test_the_device_is_no_part_of_what_was_trained(base: Path, tmp_path: Path) -> None:
    """A finished model is found again on a machine whose GPU has another number, or none."""
    steps: list[int] = []
    first = train(tmp_path / "m", base)
    again = train(tmp_path / "m", base, lambda step, loss: steps.append(step), device="cpu")
    assert again["mark"] == first["mark"]
    assert steps == []
    assert "device" not in first["recipe"]


def test_a_step_that_does_not_fit_is_an_error_with_a_remedy(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def full(*arguments: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    config = TrainConfig(out_model=tmp_path / "m", base=base, negatives=2, epochs=1)
    trainer = Trainer(TrainingSet.of(toy(), None, 0), config)
    monkeypatch.setattr(Trainer, "_logits", full)
    with pytest.raises(MemlabError, match=r"(?s)a step does not fit into the memory of cpu.*a smaller batch"):
        trainer.train(tmp_path / "c", "mark")
