from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

from memlab.errors import MemlabError
from memlab.learn import training
from memlab.learn.pairs import TrainingLists, draw
from memlab.learn.recipe import TrainingRecipe
from memlab.models.local.backend import Runtime
from memlab.models.local.cross_encoder import CrossEncoderScorer
from tests.learn.small_models import tiny
from tests.learn.test_pairs import toy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("base"))


def config(folder: Path, base: Path, **fields: object) -> TrainingRecipe:
    return TrainingRecipe(**{"out_model": folder / "m", "base": base, "negatives": 2, "batch": 4, "epochs": 1} | fields)


def drawn(settings: TrainingRecipe, examples: pl.DataFrame | None = None) -> TrainingLists:
    return draw(toy() if examples is None else examples, settings.negatives, settings.epochs, settings.batch,
                settings.seed)


def trained(settings: TrainingRecipe, folder: Path, mark: str = "mark",
            watch: training.Watch | None = None) -> list[float]:
    return training.train_reranker(training.load_reranker(settings), drawn(settings), settings, folder, mark,
                                   watch).losses


@pytest.mark.nightly
def test_an_overfit_toy_is_learnt(base: Path, tmp_path: Path) -> None:
    settings = config(tmp_path, base, negatives=3, epochs=40, batch=8, rate=3e-3, decay=0)
    told = toy().with_columns(positive="I did buy it on " + pl.col("question").cast(pl.String))
    model = training.load_reranker(settings)
    losses = training.train_reranker(model, drawn(settings, told), settings, tmp_path / "c", "mark").losses
    assert np.mean(losses[:3]) == pytest.approx(np.log(4), abs=.25)  # at first, one of four by chance
    assert np.mean(losses[-3:]) < .3


def test_the_saved_folder_is_read_by_the_scorer_and_scores_as_it_was_trained(base: Path, tmp_path: Path) -> None:
    settings = config(tmp_path, base, max_length=32)
    model = training.load_reranker(settings)
    training.train_reranker(model, drawn(settings), settings, tmp_path / "c", "mark")
    model.save_pretrained(str(tmp_path / "m"), create_model_card=False)
    queries, passages = toy()["query"].to_list()[:4], toy()["positive"].to_list()[:4]
    pairs = np.array([(q, p) for q in range(4) for p in range(4)])
    expected = model.predict([(queries[q], passages[p]) for q, p in pairs], show_progress_bar=False,
                             activation_fn=training.torch.nn.Identity())
    got = np.zeros(len(pairs), np.float32)
    for at, block in CrossEncoderScorer(path=tmp_path / "m").score(queries, passages, pairs):
        got[at] = block
    assert expected.std() > 0
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert json.loads((tmp_path / "m" / "tokenizer_config.json").read_text())["model_max_length"] == 32


def test_the_loss_is_the_softmax_over_one_positive_and_its_negatives(base: Path, tmp_path: Path) -> None:
    settings = config(tmp_path, base, negatives=3, batch=8, rate=1e-9)
    model, lists = training.load_reranker(settings), drawn(settings)
    for layer in model.modules():
        if isinstance(layer, training.torch.nn.Dropout):
            layer.p = 0.0  # so that the logits of the step can be computed again
    logits = model.predict([(query, passage) for query, row in zip(lists.queries, lists.passages) for passage in row],
                           show_progress_bar=False, activation_fn=training.torch.nn.Identity()).reshape(8, 4)
    by_hand = -np.log(np.exp(logits[:, 0]) / np.exp(logits).sum(axis=1)).mean()
    outcome = training.train_reranker(model, lists, settings, tmp_path / "c", "mark")
    assert outcome.losses == [pytest.approx(by_hand, abs=1e-6)]


class Cut(Exception):
    """An interruption."""


def interrupted(settings: TrainingRecipe, folder: Path, mark: str = "mark", at: int = 1) -> None:
    def cut(step: int, loss: float) -> None:
        if step == at:
            raise Cut

    with pytest.raises(Cut):
        trained(settings, folder, mark, cut)


def test_an_interrupted_training_goes_on_from_its_checkpoint_with_the_same_losses(base: Path, tmp_path: Path) -> None:
    settings = config(tmp_path, base, epochs=2, checkpoint_seconds=0)
    whole = trained(settings, tmp_path / "a")
    assert len(whole) == 4
    interrupted(settings, tmp_path / "b", at=2)
    taken: list[int] = []
    assert trained(settings, tmp_path / "b", watch=lambda step, _: taken.append(step)) == whole
    assert taken == [2, 3]  # the step in which it was cut has no checkpoint


@pytest.fixture(scope="module")
def cut_training(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A training that was interrupted in its third step, and the losses of one that was not."""
    folder = tmp_path_factory.mktemp("cut")
    settings = config(folder, base, epochs=2, checkpoint_seconds=0)
    interrupted(settings, folder / "c", at=2)
    return folder / "c", trained(settings, folder / "whole")


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 64
    file.write_bytes(content)


def halved(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:file.stat().st_size // 2])


@pytest.mark.parametrize(("damage", "name"), [
    (halved, "optimizer.pt"), (flipped, "model.safetensors"), (Path.unlink, training.DIGESTS)])
def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(
        cut_training: tuple[Path, list[float]], base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
        damage: Callable[[Path], None], name: str) -> None:
    folder = shutil.copytree(cut_training[0], tmp_path / "c")
    damage(folder / "checkpoint-2" / name)
    taken: list[int] = []
    assert trained(config(tmp_path, base, epochs=2, checkpoint_seconds=0), folder,
                   watch=lambda step, _: taken.append(step)) == cut_training[1]
    assert taken == [1, 2, 3]
    assert "damaged-checkpoint-2: was not written to its end, or has changed since; the training goes on from step 1" \
        in " ".join(capsys.readouterr().err.split())


def checkpoint_at(folder: Path, step: int, best: int | None) -> Path:
    checkpoint = folder / f"checkpoint-{step}"
    (checkpoint / "module").mkdir(parents=True)
    (checkpoint / "module" / "weights").write_bytes(b"0123456789")
    (checkpoint / "trainer_state.json").write_text(json.dumps({"best_global_step": best}))
    (checkpoint / training.DIGESTS).write_text(json.dumps(training.digests(checkpoint)))
    return checkpoint


@pytest.mark.parametrize(("best", "damaged", "expected"), [
    (None, (), 10), (None, (10,), 9), (None, (9, 10), 2), (None, (2, 9, 10), None),
    (9, (), 10), (9, (9,), 2), (2, (2,), None),  # without its best step a later one cannot end
])
@pytest.mark.parametrize("damage", [
    lambda folder: flipped(folder / "module" / "weights"), lambda folder: (folder / "module" / "weights").unlink(),
    lambda folder: (folder / "trainer_state.json").write_bytes(b"\xff"), shutil.rmtree,
    lambda folder: flipped(folder / training.DIGESTS), lambda folder: (folder / "module" / "more").write_text("x")])
def test_the_newest_whole_checkpoint_is_taken(tmp_path: Path, best: int | None, damaged: tuple[int, ...],
                                              expected: int | None, damage: Callable[[Path], None]) -> None:
    places = {step: checkpoint_at(tmp_path, step, best and min(best, step)) for step in (2, 9, 10)}
    for step in damaged:
        damage(places[step])
    found = training.last_checkpoint(tmp_path)
    assert found == (None if expected is None else places[expected])
    assert training.last_checkpoint(tmp_path) == found  # what is damaged stays aside


@pytest.mark.nightly
def test_a_checkpoint_of_another_training_is_not_gone_on_with(base: Path, tmp_path: Path) -> None:
    settings = config(tmp_path, base, checkpoint_seconds=0)
    interrupted(settings, tmp_path / "c", "one")
    assert training.last_checkpoint(tmp_path / "c")
    steps: list[int] = []
    trained(settings, tmp_path / "c", "two", lambda step, _: steps.append(step))
    assert steps == [0, 1]


def test_the_weights_of_the_best_step_are_loaded(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(tmp_path, base, epochs=4, rate=.03)
    lists = dataclasses.replace(drawn(settings), validation=drawn(config(tmp_path, base, seed=1)))
    model = training.load_reranker(settings)
    outcome = training.train_reranker(model, lists, settings, tmp_path / "c", "mark")
    assert outcome.step == min(outcome.evaluations, key=lambda pair: pair[1])[0] < outcome.evaluations[-1][0]
    kept = load_file(tmp_path / "c" / f"checkpoint-{outcome.step}" / "model.safetensors")
    now = model.model.state_dict()
    assert all(np.array_equal(now[name], weight) for name, weight in kept.items())
    monkeypatch.setattr(training.CrossEncoderTrainer, "_load_from_checkpoint", lambda *_: None)
    with pytest.raises(MemlabError, match="the weights of the best step"):
        training.train_reranker(training.load_reranker(settings), lists, settings, tmp_path / "d", "mark")


def test_a_loss_that_is_no_number_is_an_error(base: Path, tmp_path: Path) -> None:
    settings = config(tmp_path, base)
    model = training.load_reranker(settings)
    for parameter in model.parameters():
        parameter.data[:] = float("nan")
    with pytest.raises(MemlabError, match="the loss of step 1 is not a number"):
        training.train_reranker(model, drawn(settings), settings, tmp_path / "c", "mark")


def test_a_step_that_does_not_fit_is_an_error_with_a_remedy(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **others: object) -> None:
        raise training.torch.OutOfMemoryError("CUDA out of memory.")

    settings = config(tmp_path, base)
    model = training.load_reranker(settings)
    monkeypatch.setattr(model, "forward", full)
    with pytest.raises(MemlabError, match=r"(?s)a step does not fit into the memory of cpu.*a smaller batch"):
        training.train_reranker(model, drawn(settings), settings, tmp_path / "c", "mark")


def test_one_training_takes_the_device_that_is_named(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of several GPUs, where the library would take all of them; also in bf16."""
    asked: list[str] = []
    monkeypatch.setattr(training, "resolve", lambda device, *others: asked.append(device) or
                        Runtime(("cpu",), "fp32", "torch"))
    settings = config(tmp_path, base, precision="bf16", device="cuda:1")
    assert np.isfinite(trained(settings, tmp_path / "c")).all()
    assert asked == ["cuda:1"]
    monkeypatch.setattr(training.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(training.torch.cuda, "device_count", lambda: 4)
    chosen: list[object] = []
    monkeypatch.setattr(training.torch.cuda, "set_device", chosen.append)
    arguments = training.RerankerArguments(output_dir=str(tmp_path), on="cuda:1", report_to="none")
    assert (str(arguments.device), arguments.n_gpu) == ("cuda:1", 1)
    assert str(chosen[-1]) == "cuda:1"


def test_a_gpu_that_is_not_there_is_refused(base: Path, tmp_path: Path) -> None:
    if training.torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(MemlabError, match="device=cuda:1, but this process sees no GPU"):
        training.load_reranker(config(tmp_path, base, device="cuda:1"))


def test_missing_libraries_name_the_extra(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "find_spec", lambda name: None if name == "datasets" else name)
    with pytest.raises(MemlabError, match=r"memlab\[train\]"):
        training.load_reranker(config(tmp_path, base))
