from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.learn import training
from memlab.learn.pairs import TrainingLists, draw
from memlab.learn.recipe import TrainingRecipe
from memlab.models.local.backend import Runtime
from memlab.support.errors import MemlabError
from tests.learn.test_pairs import toy

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path, tiny_reranker: Path) -> TrainingRecipe:
    """Four steps over eight examples."""
    return TrainingRecipe(out_model=tmp_path / "m", base=tiny_reranker, negatives=2, batch=4, epochs=2, max_length=32)


def drawn(settings: TrainingRecipe) -> TrainingLists:
    return draw(toy(), settings.negatives, settings.epochs, settings.batch, settings.seed)


def trained(settings: TrainingRecipe, folder: Path, mark: str = "mark",
            watch: training.Watch | None = None) -> list[float]:
    return training.train_reranker(training.load_reranker(settings), drawn(settings), settings, folder, mark, watch)


def test_the_loss_is_the_softmax_over_one_positive_and_its_negatives(settings: TrainingRecipe, tmp_path: Path) -> None:
    settings = TrainingRecipe(out_model=tmp_path, base=settings.base, negatives=3, batch=8, epochs=1, rate=1e-9)
    model, lists = training.load_reranker(settings), drawn(settings)
    for layer in model.modules():
        if isinstance(layer, training.torch.nn.Dropout):
            layer.p = 0.0  # so that the logits of the step can be computed again
    logits = model.predict([(query, passage) for query, row in zip(lists.queries, lists.passages) for passage in row],
                           show_progress_bar=False, activation_fn=training.torch.nn.Identity()).reshape(8, 4)
    by_hand = -np.log(np.exp(logits[:, 0]) / np.exp(logits).sum(axis=1)).mean()
    assert training.train_reranker(model, lists, settings, tmp_path / "c", "mark") == [pytest.approx(by_hand, abs=1e-6)]


class Cut(Exception):
    """An interruption."""


@pytest.mark.parametrize("damage", [
    lambda checkpoint: (checkpoint / training.DIGESTS).unlink(),  # interrupted while it was written
    lambda checkpoint: (checkpoint / "optimizer.pt").write_bytes(b"junk")])
def test_an_interrupted_training_goes_on_from_its_last_whole_checkpoint_with_the_same_losses(
        damage: Callable[[Path], None], settings: TrainingRecipe, tmp_path: Path) -> None:
    def cut(step: int, loss: float) -> None:
        if step == 2:
            raise Cut

    whole = trained(settings, tmp_path / "a")
    assert len(whole) == 4
    with pytest.raises(Cut):
        trained(settings, tmp_path / "b", watch=cut)
    damage(tmp_path / "b" / "checkpoint-2")
    taken: list[int] = []
    assert trained(settings, tmp_path / "b", watch=lambda step, _: taken.append(step)) == whole
    assert taken == [1, 2, 3]
    trained(settings, tmp_path / "b", "another training", lambda step, _: taken.append(step))
    assert taken[3:] == [0, 1, 2, 3]


def test_what_goes_wrong_in_a_training_is_an_error_with_a_remedy(
        settings: TrainingRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **others: object) -> None:
        raise training.torch.OutOfMemoryError("CUDA out of memory.")

    model = training.load_reranker(settings)
    for parameter in model.parameters():
        parameter.data[:] = float("nan")
    with pytest.raises(MemlabError, match="the loss of step 1 is not a number"):
        training.train_reranker(model, drawn(settings), settings, tmp_path / "c", "mark")
    monkeypatch.setattr(model, "forward", full)
    with pytest.raises(MemlabError, match=r"(?s)a step does not fit into the memory of cpu.*a smaller batch"):
        training.train_reranker(model, drawn(settings), settings, tmp_path / "c", "mark")
    settings.trainer["eval_strategy"] = "sometimes"
    with pytest.raises(MemlabError, match="trainer: .*sometimes"):
        trained(settings, tmp_path / "c")
    with pytest.raises(ValidationError, match="there is no argument 'weight_dekay'; did you mean 'weight_decay'"):
        TrainingRecipe(out_model=tmp_path, trainer={"weight_dekay": 0.1})
    if not training.torch.cuda.is_available():
        with pytest.raises(MemlabError, match="device=cuda:1, but this process sees no GPU"):
            training.load_reranker(TrainingRecipe(out_model=tmp_path, base=settings.base, device="cuda:1"))
    monkeypatch.setattr(training, "find_spec", lambda name: None if name == "datasets" else name)
    with pytest.raises(MemlabError, match=r"memlab\[train\]"):
        training.load_reranker(settings)


def test_one_training_takes_the_device_that_is_named(
        settings: TrainingRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of several GPUs, where the library would take all of them; also in bf16."""
    asked: list[str] = []
    monkeypatch.setattr(training, "resolve", lambda device, *others: asked.append(device) or
                        Runtime(("cpu",), "fp32", "torch"))
    on_gpu = TrainingRecipe(out_model=tmp_path, base=settings.base, batch=4, precision="bf16", device="cuda:1")
    assert np.isfinite(trained(on_gpu, tmp_path / "c")).all()
    assert asked == ["cuda:1"]
    monkeypatch.setattr(training.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(training.torch.cuda, "device_count", lambda: 4)
    chosen: list[object] = []
    monkeypatch.setattr(training.torch.cuda, "set_device", chosen.append)
    arguments = training.RerankerArguments(output_dir=str(tmp_path), on="cuda:1", report_to="none")
    assert (str(arguments.device), arguments.n_gpu) == ("cuda:1", 1)
    assert str(chosen[-1]) == "cuda:1"
