from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from safetensors.numpy import load_file

from memlab.commands.train import main as train_main
from memlab.learn import reranker
from memlab.learn.cross_fit_rerank import read
from memlab.learn.recipe import PairRecipe, TrainingRecipe
from memlab.learn.sources import make_examples
from memlab.store import Store
from memlab.support.errors import DiskFault, MemlabError
from tests.faults.limits import largest_file
from tests.learn.small_models import LEXICAL, lives
from tests.small import with_words

pytestmark = pytest.mark.slow

WORDS = ["data.lives=4", "data.sessions=15", "data.questions=8", "search/dense=none", "store=null"]


def train(folder: Path, base: Path, watch=None, **fields) -> dict:
    settings = {"limit": 12, "epochs": 1, "batch": 4, "negatives": 2, **fields}
    return reranker.train(TrainingRecipe(out_model=folder, base=base, **settings),
                          [] if "pairs" in fields else WORDS, watch)


def same(one: Path, two: Path) -> bool:
    a, b = (load_file(folder / "model.safetensors") for folder in (one, two))
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_training_is_repeatable_by_seed_and_resumes_to_the_same_weights(tiny_reranker: Path, tmp_path: Path) -> None:
    def cut(step: int, loss: float) -> None:
        if step == 1:
            raise KeyboardInterrupt

    first = train(tmp_path / "a", tiny_reranker)
    assert first["counts"]["steps"] == 3
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "b", tiny_reranker, cut)
    assert not (tmp_path / "b").exists()  # unfinished work is no model
    with largest_file(4000), pytest.raises(DiskFault, match=rf"^{tmp_path / 'b'}.*cannot be written: the "):
        train(tmp_path / "b", tiny_reranker)
    assert not (tmp_path / "b").exists()
    assert train(tmp_path / "b", tiny_reranker)["losses"] == first["losses"]
    assert same(tmp_path / "a", tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    train(tmp_path / "c", tiny_reranker, seed=1)
    assert not same(tmp_path / "a", tmp_path / "c")


def test_a_finished_model_returns_at_once_and_another_is_not_overwritten(tiny_reranker: Path, tmp_path: Path) -> None:
    def never(step: int, loss: float) -> None:
        raise AssertionError("trained again")

    first = train(tmp_path / "a", tiny_reranker)
    again = train(tmp_path / "a", tiny_reranker, never, device="cpu")  # on whatever device it was made
    assert again == json.loads(json.dumps(first, default=str)) | {"format": "memlab-reranker-1"}
    with pytest.raises(MemlabError, match="another configuration"):
        train(tmp_path / "a", tiny_reranker, never, epochs=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(MemlabError, match="holds something else"):
        train(tmp_path / "mine", tiny_reranker, never)


def test_the_record_has_the_questions_that_were_learned_and_held_out(tiny_reranker: Path, tmp_path: Path) -> None:
    made = train(tmp_path / "a", tiny_reranker, fold="1/2")
    assert read(tmp_path / "a").held_out == frozenset(made["held_out"])
    texts = lives()["questions"]
    assert len(made["held_out"]) == made["counts"]["held_out"] == texts.height / 2
    assert made["data"]["benchmark"] == "synthetic"
    assert str(tmp_path) not in (tmp_path / "a" / "training.json").read_text()
    train(tmp_path / "b", tiny_reranker)
    assert (read(tmp_path / "b").fold, read(tmp_path / "b").learnt) == ("all", frozenset(texts["text_id"]))


def test_examples_of_files_train_it_and_their_questions_count_as_learned(tiny_reranker: Path, tmp_path: Path) -> None:
    files = {tmp_path / f"{seed}.jsonl": times for seed, times in ((0, 1), (1, .5))}
    for number, file in enumerate(files):
        assert train_main(["pairs", *WORDS[:-1], f"store={tmp_path}/s", f"file={file}", "limit=6", "fold=1/2",
                           f"seed={number}"]) == 0
    made = train(tmp_path / "m", tiny_reranker, pairs=files, limit=None)
    assert made["counts"]["examples"] == 6 + 3
    assert [(source["file"], source["times"]) for source in made["sources"]] == [("0.jsonl", 1), ("1.jsonl", .5)]
    record = read(tmp_path / "m")
    assert (record.fold, record.held_out) == ("all", frozenset())
    assert len(record.learnt) == made["counts"]["questions"]
    assert not record.may_score("any key", next(iter(record.learnt)))
    assert record.may_score("any key", "another text")


def test_the_command_line(tiny_reranker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data.lives=3", "data.sessions=12", "data.questions=6", "search/dense=none", f"base={tiny_reranker}",
             f"out_model={tmp_path / 'm'}", "fold=1/3", "limit=4", "batch=2", "epochs=1", f"store={tmp_path / 's'}"]
    assert reranker.main(words) == 0
    assert "6 questions held out" in capsys.readouterr().out
    for wrong, status, message in (
            (with_words(["epochs=2"], *words), 1, "delete this one"),  # the folder is another model's
            (["epocs=1", "data=locmo"], 2, "did you mean 'epochs'"),
            (["out_model=x", "data=locmo"], 2, "did you mean 'locomo'"), (["out_model=x", "epochs=0"], 2, "epochs"),
            (["out_model=x", "fold=4/3"], 2, "k/n"), (["out_model=x", f"base={tmp_path}/no"], 2, "no model folder"),
            (["out_model=x", "device=gpu"], 2, "device"),
            (["data=synthetic"], 2, "out_model: Field required; write out_model=")):
        assert reranker.main(wrong) == status
        assert message in capsys.readouterr().err
    assert reranker.main(["--help"]) == 0


def test_data_without_evidence_are_refused() -> None:
    blind = lives().updated({"evidence": lives()["evidence"].head(0)})
    with pytest.raises(MemlabError, match="no question has an evidence turn"):
        make_examples(blind, LEXICAL, PairRecipe(), Store())
    with pytest.raises(ValidationError, match="leave fold out"):
        PairRecipe(questions="rules", fold="1/2")
