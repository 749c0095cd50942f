"""Examples that choose the best step: whole groups, none that is measured later; the same weights when interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.learn import encoder, training
from memlab.learn.recipe import EncoderRecipe, PairRecipe
from memlab.learn.sources import make_examples
from memlab.learn.validation import keep_apart, with_groups
from memlab.store import Store
from memlab.tables import SESSION, frame
from tests.learn.small_models import LEXICAL, lives, tiny_encoder
from tests.learn.test_pairs import shared_world, taught
from tests.small import LIVES


def made(groups: list[int | None]) -> pl.DataFrame:
    """One example a group; each positive is a negative of all others."""
    texts = [f"p{i}" for i in range(len(groups))]
    return pl.DataFrame({"query": [f"q{i}" for i in range(len(groups))], "positive": texts,
                         "negatives": [[other for other in [*texts, "n"] if other != text] for text in texts],
                         "group": groups}, schema_overrides={"group": pl.Int64})


def test_whole_groups_are_kept_apart_and_their_evidence_is_no_negative_of_others() -> None:
    examples = made([0, 0, 1, 1, 2, 2, 3, 3])
    learned, apart, record = keep_apart(examples, .3, measured=False, seed=0)
    assert apart["group"].n_unique() == record["groups"] == 2  # one group of an example in eight is not .3 of them
    assert not set(apart["group"]) & set(learned["group"])
    assert learned.height + apart.height == 8
    assert not set(apart["positive"]) & set(learned["negatives"].explode())
    assert set(apart["negatives"].explode()) == {*examples["positive"], "n"}
    other = [keep_apart(examples, .3, False, seed)[1]["query"].to_list() for seed in range(5)]
    assert other[0] == apart["query"].to_list()
    assert len({tuple(one) for one in other}) > 1
    renumbered = examples.with_columns(group=7 - pl.col("group"))
    assert keep_apart(renumbered, .3, False, 0)[1]["query"].to_list() == apart["query"].to_list()


def test_nothing_is_kept_apart_unless_something_is_measured_or_a_share_is_asked_for() -> None:
    examples = made([0, 1, 2])
    for share, measured, why in ((None, False, "no question is measured afterwards"), (0.0, True, "validation=0")):
        learned, apart, record = keep_apart(examples, share, measured, 0)
        assert (learned.height, apart.height, record) == (3, 0, {"none": why})
    assert keep_apart(examples, None, True, 0)[1].height == 1
    for alone in (made([0, 0]), made([None, None])):  # one group, and none that may choose
        assert keep_apart(alone, None, True, 0)[2] == {"none": "no group of examples can be kept apart"}
        with pytest.raises(MemlabError, match="no group that can be kept apart"):
            keep_apart(alone, .2, True, 0)
    assert keep_apart(made([0, None]), .5, False, 0)[1]["query"].to_list() == ["q0"]


def test_a_group_that_shares_evidence_with_what_is_measured_has_no_number() -> None:
    world = shared_world(corpora=3)
    examples = taught(world)
    measured = pl.DataFrame({"corpus": [1], "session": [2]}, schema=dict.fromkeys(SESSION, pl.Int32))
    grouped = with_groups(examples, world, measured)
    assert grouped["group"].is_null().to_list() == [False, True, False]  # of several corpora the whole one
    assert grouped["group"].drop_nulls().n_unique() == 2
    one = shared_world((("gold 0", "gold 0 too"), ("common", "x"), ("own 0", "y 0")), corpora=1)
    two = one.updated({
        "questions": frame("questions", {"question": [0, 1], "corpus": [0, 0], "text_id": ["a", "b"]}),
        "evidence": frame("evidence", {"question": [0, 1], "session": [0, 2], "turn": [0, 0]})})
    of = pl.DataFrame({"question": [0, 1]}, schema={"question": pl.Int32})
    measured = pl.DataFrame({"corpus": [0], "session": [2]}, schema=dict.fromkeys(SESSION, pl.Int32))
    assert with_groups(of, two, measured)["group"].is_null().to_list() == [False, True]  # of one, the session


def test_held_out_questions_and_marked_ones_bar_their_corpora() -> None:
    folded, fold = make_examples(lives(), LEXICAL, PairRecipe(fold="1/2"), Store())
    assert fold.held_out.height
    assert not folded["group"].is_null().any()
    assert folded["group"].n_unique() == 2  # corpora of the training
    ruled, _ = make_examples(lives(), LEXICAL, PairRecipe(questions="rules"), Store())
    assert ruled["group"].is_null().all()  # questions are marked in all corpora
    none = lives().updated({"evidence": lives()["evidence"].clear()})
    free, _ = make_examples(none, LEXICAL, PairRecipe(questions="rules"), Store())
    assert not free["group"].is_null().any()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base"))


@pytest.mark.slow
def test_the_best_step_is_kept_and_an_interruption_changes_no_byte(
        base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate at which the loss soon rises: the training ends early, and an earlier step is kept."""
    words = ["data.lives=4", *LIVES[1:], "search/dense=none", f"store={tmp_path}/store"]
    monkeypatch.setattr(training, "PATIENCE", 2)

    def recipe(name: str) -> EncoderRecipe:
        return EncoderRecipe(out_model=tmp_path / name, base=base, batch=4, epochs=4, rank=4, device="cpu", rate=.03,
                             warmup=0, validation=.3, checkpoint_seconds=0)

    record = encoder.train(recipe("a"), words)
    kept, evaluations = record["kept_step"], record["kept_step"]["evaluations"]
    assert kept["step"] == min(evaluations, key=lambda pair: pair[1])[0]
    assert record["counts"]["steps"] == evaluations[-1][0] > kept["step"]
    assert len([step for step, _ in evaluations if step > kept["step"]]) == 2  # without progress
    assert (kept["metric"], kept["examples"] > 0) == ("loss", True)

    for number, at in enumerate((kept["step"] + 1, record["counts"]["steps"] - 1)):
        def stop(step: int, loss: float, at: int = at) -> None:  # noqa: ARG001
            if step == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            encoder.train(recipe(f"b{number}"), words, stop)
        again = encoder.train(recipe(f"b{number}"), words)
        assert again["kept_step"] == kept
        assert ((tmp_path / f"b{number}" / encoder.UPDATE).read_bytes()
                == (tmp_path / "a" / encoder.UPDATE).read_bytes())


@pytest.mark.slow
def test_without_examples_apart_the_last_step_is_kept(base: Path, tmp_path: Path) -> None:
    words = [*LIVES, "search/dense=none", f"store={tmp_path}/store"]
    settings = EncoderRecipe(out_model=tmp_path / "m", base=base, batch=4, epochs=1, limit=12, device="cpu")
    encoder.train(settings, words)
    record = json.loads((tmp_path / "m" / "training.json").read_text())
    assert record["kept_step"] == {"step": record["counts"]["steps"], "none": "no question is measured afterwards"}
