from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gpu import __main__ as gpu
from gpu import agreement, speed
from gpu.rows import Row

from memlab.__main__ import main
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import Floats, Ints
from memlab.stages.search.exact import ExactOnDevice, Neighbours

pytestmark = pytest.mark.nightly


def test_a_cpu_agrees_with_itself_and_its_speed_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "gpu", "device=cpu", f"out={tmp_path / 'found.json'}"]) == 0
    out, found = capsys.readouterr().out, json.loads((tmp_path / "found.json").read_text())
    assert (found["size"], found["device"]) == ("small", "cpu")
    states = {row["name"]: row["state"] for row in found["rows"]}
    assert set(states.values()) <= {"ok", "skipped"}
    assert all(name in out for name in states)
    parts = [row["part"] for row in found["rows"]]
    assert [parts.count(part) for part in ("agreement", "rates", "speed")] == [8, 1, 7]
    shares = [row["numbers"]["share"] for row in found["rows"] if "share" in row["numbers"]]
    assert len(shares) == 5
    assert all(share > 0 for share in shares)  # above 1 where a busy machine measured its own rate too low


@pytest.mark.parametrize(("words", "message"), [
    (["devise=cpu"], "there is no word 'devise=cpu'. Fix: did you mean 'device'?"),
    (["size=large"], "size=large is none of"), (["cpu"], "there is no word 'cpu'"),
    (["device=cuda:99"], "this process sees"), (["device=tpu"], "device=tpu is none of auto, cpu"),
    (["device=cpu:x"], "device=cpu:x is none of"), (["size="], "'size=' has no value")])
def test_wrong_words_are_named_before_anything_is_loaded(words: list[str], message: str,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(words) == 2
    assert message in capsys.readouterr().out


def test_scores_that_are_none_for_one_question_are_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def scores(folder: Path, device: str, questions: list[str], turns: list[str], pairs: Ints) -> Floats:
        calls.append(len(pairs))
        found = np.arange(len(pairs), dtype=np.float32)
        found[-5:] = np.nan if len(calls) > 1 else 0
        return found

    monkeypatch.setattr(agreement, "_scores", scores)
    assert agreement.rerank_order(tmp_path, "cpu").state == "off"


def test_vectors_of_a_wrong_model_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SentenceEmbedder.encode

    def worse(self: SentenceEmbedder, texts: list[str], role: str) -> object:
        for at, vectors in real(self, texts, role):  # type: ignore[arg-type]
            yield at, vectors[:, ::-1] if self.token_budget else vectors

    monkeypatch.setattr(SentenceEmbedder, "encode", worse)
    row = agreement.batches("cpu", ["a walk", "a cat"])
    assert row.state == "off"
    assert "dtype=fp32" in row.advice


def test_a_search_that_misses_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agreement.exact("cpu", 16, 2_000).state == "ok"

    def latest(self: ExactOnDevice, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        return [(np.arange(n)[-depth:], (self.vectors[:n] @ query)[-depth:]) for query, n in zip(queries, visible)]

    monkeypatch.setattr(ExactOnDevice, "search", latest)
    assert agreement.exact("cpu", 16, 2_000).state == "off"


def test_only_full_sizes_are_judged_by_another_library() -> None:
    def row(sizes: speed.Sizes, rate: float) -> Row:
        return speed._speed_row(sizes, "a", rate, "texts/s", (0.5, "the product"), 100.0, "another", "do this")

    assert [row(speed.REAL, 89).state, row(speed.REAL, 91).state, row(speed.SMALL, 10).state] == ["off", "ok", "ok"]
    assert row(speed.REAL, 50).beside == "another: 100 texts/s, memlab 0.50 times that"
