"""Models in processes of their own: their results, their errors and their end. The devices are CPUs."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from memlab.errors import MemlabError
from memlab.models.local import loading
from memlab.models.local.adapter import write_update
from memlab.models.local.backend import Runtime
from memlab.models.local.base import LocalModel, files_digest
from memlab.models.local.batching import InputWindow, run_batches
from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.loading import RemoteModel
from memlab.models.protocols import Embedder, PairScorer
from tests.learn.small_models import tiny_encoder
from tests.models.local.test_cross_encoder import save_bert

pytestmark = pytest.mark.slow


class Squares:
    """A model with room for four numbers, and faults."""

    def __init__(self, device: str) -> None:
        if device == "broken":
            raise FileNotFoundError("no weights here")
        self.device = device

    def squared(self, numbers: np.ndarray) -> np.ndarray:
        time.sleep(.01)  # so that several calls wait
        if len(numbers) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return numbers**2

    def surroundings(self) -> tuple[int, str, str]:
        return os.getpid(), self.device, os.environ.get("CUDA_VISIBLE_DEVICES", "")

    def fails(self, text: str) -> None:
        raise ValueError(text)

    def refuses(self) -> None:
        raise MemlabError("the text is too long", fix="cut it")

    def dies(self) -> None:
        os._exit(3)


@pytest.fixture(scope="module")
def remote() -> RemoteModel:
    return RemoteModel(Squares, "cpu")


def test_a_call_is_answered_by_another_process(remote: RemoteModel) -> None:
    assert remote.squared(np.arange(3)).tolist() == [0, 1, 4]
    assert remote.surroundings()[0] != os.getpid()


def test_each_thread_gets_its_own_answer(remote: RemoteModel) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda i: remote.squared(np.array([i]))[0], range(40)))
    assert answers == [i * i for i in range(40)]


def test_errors_reach_the_caller_and_the_process_goes_on(remote: RemoteModel) -> None:
    with pytest.raises(MemlabError, match="the process that computes on cpu failed: ValueError: no such token"):
        remote.fails("no such token")
    with pytest.raises(MemlabError, match=r"(?s)the text is too long.*cut it"):
        remote.refuses()
    with pytest.raises(MemlabError, match="AttributeError.*cubed"):
        remote.cubed(np.arange(3))
    assert remote.squared(np.arange(2)).tolist() == [0, 1]


def test_a_batch_that_does_not_fit_is_halved(remote: RemoteModel) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        remote.squared(np.arange(8))
    window = InputWindow(np.arange(16), np.ones(16, np.int64), lambda batch: batch)
    results = list(run_batches([window], lambda job: job, 8, [remote], lambda model, batch: model.squared(batch),
                               {}, lanes=2))
    assert {int(i): int(r) for batch, squares in results for i, r in zip(batch, squares)} == {
        i: i * i for i in range(16)}


def test_a_process_that_dies_is_an_error_that_says_so() -> None:
    remote = RemoteModel(Squares, "cpu")
    for _ in range(2):
        with pytest.raises(MemlabError, match="the process that computes on cpu ended with exit status 3"):
            remote.dies()


def test_a_model_that_cannot_be_loaded_is_an_error_at_the_first_call() -> None:
    remote = RemoteModel(Squares, "broken")
    with pytest.raises(MemlabError, match="FileNotFoundError: no weights here"):
        remote.squared(np.arange(2))


def test_a_process_ends_with_its_model() -> None:
    remote = RemoteModel(Squares, "cpu")
    process = remote._process
    assert remote.squared(np.arange(2)).tolist() == [0, 1]
    assert process.poll() is None
    del remote
    gc.collect()
    assert process.poll() == 0


@pytest.mark.parametrize(("visible", "device", "sees"), [(None, "cuda:2", "2"), ("4,7", "cuda:1", "7"),
                                                         ("GPU-a,GPU-b", "cuda:0", "GPU-a")])
def test_a_process_sees_its_own_gpu_as_the_first(
    visible: str | None, device: str, sees: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would otherwise take memory of the first GPU of the machine as well."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert RemoteModel(Squares, device).surroundings()[1:] == ("cuda:0", sees)


TEXTS = [" ".join(["anna", "moved", "to", "lisbon"] * n) for n in range(1, 12)]
PAIRS = np.array([(q, p) for q in range(3) for p in range(len(TEXTS))])


def encoded(embedder: Embedder) -> np.ndarray:
    rows = np.full((len(TEXTS), embedder.dim()), np.nan, np.float32)
    for at, vectors in embedder.encode(TEXTS, "document"):
        rows[at] = vectors
    return rows


def scored(scorer: PairScorer) -> np.ndarray:
    scores = np.full(len(PAIRS), np.nan, np.float32)
    for at, block in scorer.score(TEXTS[:3], TEXTS, PAIRS):
        scores[at] = block
    return scores


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The devices of the processes that were started, and the methods that were called in them."""
    log: list[str] = []
    start, call = RemoteModel.__init__, RemoteModel._call
    monkeypatch.setattr(RemoteModel, "__init__", lambda self, load, device: log.append(device) or
                        start(self, load, device))
    monkeypatch.setattr(RemoteModel, "_call", lambda self, method, *given: log.append(method) or
                        call(self, method, *given))
    loading.load_on_devices.cache_clear()
    yield log
    loading.load_on_devices.cache_clear()


@pytest.mark.parametrize(("pays", "expected"), [(0, {"cpu", "sentences", "logits"}), (10**6, set())])
def test_long_jobs_on_several_devices_run_in_several_processes(
    pays: int, expected: set[str], started: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors and scores are the same, and each in its place."""
    save_bert(tmp_path)
    embedder, scorer = SentenceEmbedder(token_budget=256), CrossEncoderScorer(path=tmp_path, token_budget=256)
    vectors, scores = encoded(embedder), scored(scorer)
    monkeypatch.setattr(LocalModel, "_runtime", lambda self: Runtime(("cpu", "cpu"), "fp32", "torch"))
    monkeypatch.setattr(loading, "APART_PAYS", pays)
    np.testing.assert_allclose(encoded(embedder), vectors, atol=1e-5)
    np.testing.assert_allclose(scored(scorer), scores, atol=1e-5)
    assert set(started) == expected


def test_a_process_loads_the_update_too(started: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process adds the same update to its own copy of the weights."""
    base, file = tiny_encoder(tmp_path), tmp_path / "u.safetensors"
    change = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float16)
    write_update(file, {"encoder.layer.0.output.dense.weight.add": change}, {"base": files_digest(base)})
    embedder = SentenceEmbedder(path=base, name="tiny", adapter=file, token_budget=256)
    vectors, plain = encoded(embedder), encoded(SentenceEmbedder(path=base, name="tiny", token_budget=256))
    monkeypatch.setattr(LocalModel, "_runtime", lambda self: Runtime(("cpu", "cpu"), "fp32", "torch"))
    monkeypatch.setattr(loading, "APART_PAYS", 0)
    np.testing.assert_allclose(encoded(embedder), vectors, atol=1e-5)
    assert np.abs(vectors - plain).max() > 1e-2
    assert set(started) == {"cpu", "sentences"}


def test_token_vectors_stay_in_this_process(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tensors on their devices, too large to be sent."""
    monkeypatch.setattr(LocalModel, "_runtime", lambda self: Runtime(("cpu", "cpu"), "fp32", "torch"))
    monkeypatch.setattr(loading, "APART_PAYS", 0)
    blocks = SentenceEmbedder(token_budget=256).token_vectors(TEXTS, "document", special=True, punctuation=True)
    assert sorted(int(i) for batch, *_ in blocks for i in batch) == list(range(len(TEXTS)))
    assert started == []


def test_a_hung_process_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SECONDS", .2)
    remote = RemoteModel(Squares, "cpu")
    process = remote._process
    os.kill(process.pid, signal.SIGSTOP)
    del remote
    gc.collect()
    assert process.poll() == -9
