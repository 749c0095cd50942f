from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.commands.train import main as train_main
from memlab.learn import encoder, encoder_training, sources
from memlab.learn.cross_fit_rerank import Chance
from memlab.learn.held_out import compare_pipelines
from memlab.learn.pairs import TrainingLists, distinct_batches, read_examples
from memlab.learn.recipe import EncoderRecipe
from memlab.models.local.adapter import read_update
from memlab.models.local.base import M3_HEAD
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import LateInteraction
from memlab.pipeline.tables import text_hash, with_text
from memlab.run import main as run_main
from memlab.stages.rank.rerank import Rerank
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.learn.small_models import LEXICAL
from tests.models.scores import pair_scores
from tests.small import LIVES, lives

WORDS = [*LIVES, "search/dense=none", "track=none"]


def recipe(folder: Path, base: Path, **fields: Any) -> EncoderRecipe:
    return EncoderRecipe(**{"out_model": folder / "m", "base": base, "batch": 4, "epochs": 1, "rank": 4,
                            "device": "cpu", **({} if "pairs" in fields else {"limit": 24}), **fields})


def scores_of(embedder: SentenceEmbedder, queries: list[str], passages: list[str]) -> np.ndarray:
    pairs = np.array([(q, p) for q in range(len(queries)) for p in range(len(passages))])
    return pair_scores(LateInteraction(embedder=embedder), queries, passages, pairs)


@pytest.fixture(scope="module")
def headed(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base with a linear layer of token vectors beside it, as bge-m3 has one."""
    import torch

    folder = shutil.copytree(tiny_base, tmp_path_factory.mktemp("headed") / "encoder")
    torch.manual_seed(1)
    torch.save(torch.nn.Linear(32, 16).state_dict(), folder / M3_HEAD)
    return Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tiny_base", "headed"])
def test_the_loss_is_the_softmax_of_weighted_maxsim_over_all_passages_of_a_step(
        kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    base = request.getfixturevalue(kind)
    settings = recipe(tmp_path, base, rate=1e-9, batch=2)
    lists = TrainingLists(["who bought a bike", "the red cat"], [["I bought a bike", "I sold it"],
                                                                  ["my cat is red", "my dog is red"]])
    passages = [text for row in lists.passages for text in row]
    parts = encoder_training.load(settings, passages)
    tokenizer = parts.transformer.tokenizer
    weight = encoder_training.token_weights(tokenizer, passages, settings.max_length)
    embedder = SentenceEmbedder(path=base, name="tiny", backend="torch")
    matcher = LateInteraction(embedder=embedder)
    vectors = {text: matrix for role, texts in (("query", lists.queries), ("document", passages))
               for at, ids, matrices in matcher.token_vectors(texts, role)  # type: ignore[arg-type]
               for text, matrix in zip([texts[i] for i in at], zip(ids, matrices))}
    by_hand = []
    for number, query in enumerate(lists.queries):
        ids, matrix = vectors[query]
        share = weight[ids] / weight[ids].sum()
        row = np.array([share @ (matrix @ vectors[text][1].T).max(axis=1) for text in passages]) * 20
        by_hand.append(np.log(np.exp(row).sum()) - row[2 * number])
    (loss,) = encoder_training.train_encoder(parts, lists, settings, tmp_path / "c", "mark")
    assert loss == pytest.approx(np.mean(by_hand), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tiny_base", "headed"])
def test_a_training_gives_a_model_and_its_update_and_returns_at_once_when_it_is_there(
        kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    base = request.getfixturevalue(kind)
    settings = recipe(tmp_path, base, rank=32, rate=1e-2)
    record = encoder.train(settings, [*WORDS, f"store={tmp_path}/store"])
    assert record["counts"]["steps"] > 1
    whole = SentenceEmbedder(path=settings.out_model, name="whole")
    updated = SentenceEmbedder(path=base, name="base", adapter=settings.out_model / encoder.UPDATE)
    plain = SentenceEmbedder(path=base, name="base")
    texts = ["What is my cat called?"], ["My cat is called Tom.", "It rained."]
    np.testing.assert_allclose(scores_of(updated, *texts), scores_of(whole, *texts), atol=2e-3)
    assert np.abs(scores_of(updated, *texts) - scores_of(plain, *texts)).max() > 1e-2
    assert updated.identity() != plain.identity()
    head = settings.out_model / M3_HEAD
    assert not head.is_file() or head.read_bytes() == (base / M3_HEAD).read_bytes()
    again = encoder.train(settings, [*WORDS, f"store={tmp_path}/store"])
    assert (again["mark"], again["seconds"]) == (record["mark"], record["seconds"])


@pytest.mark.slow
def test_fewer_dimensions_are_a_map_of_the_token_vectors(headed: Path, tmp_path: Path) -> None:
    settings = recipe(tmp_path, headed, dimensions=8)
    encoder.train(settings, [*WORDS, f"store={tmp_path}/store"])
    embedder = SentenceEmbedder(path=headed, name="base", adapter=settings.out_model / encoder.UPDATE)
    (_, _, (matrix,)), = LateInteraction(embedder=embedder).token_vectors(["My cat is called Tom."], "document")
    assert matrix.shape[1] == embedder.token_width() == 8
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_bytes_also_after_an_interruption(tiny_base: Path, tmp_path: Path) -> None:
    def stop(step: int, loss: float) -> None:  # noqa: ARG001
        if step == 1:
            raise KeyboardInterrupt

    words = [*WORDS, f"store={tmp_path}/store"]
    whole, cut = recipe(tmp_path / "a", tiny_base), recipe(tmp_path / "b", tiny_base)
    encoder.train(whole, words)
    with pytest.raises(KeyboardInterrupt):
        encoder.train(cut, words, stop)
    steps: list[int] = []
    encoder.train(cut, words, lambda step, _: steps.append(step))
    assert steps[0] == 1
    assert (cut.out_model / encoder.UPDATE).read_bytes() == (whole.out_model / encoder.UPDATE).read_bytes()


@pytest.mark.slow
def test_a_run_says_how_many_of_its_questions_the_encoder_has_learned(tiny_base: Path, tmp_path: Path) -> None:
    words = [*WORDS, f"store={tmp_path}/store"]
    encoder.train(recipe(tmp_path, tiny_base, fold="1/2"), words)
    assert run_main([*LIVES, "track=none", "search/lexical=none", f"store={tmp_path}/store", f"out={tmp_path}/runs",
                     f"embedder.path={tiny_base}", "embedder.name=tiny",
                     f"embedder.adapter={tmp_path}/m/{encoder.UPDATE}"]) == 0
    (file,) = (tmp_path / "runs").glob("*/*/*/manifest.json")
    ((what, counted),) = [entry for entry in json.loads(file.read_text())["told"].items() if "learned" in entry[0]]
    assert "do not tell how it does on new ones" in what
    assert 0 < counted["number"] < counted["of"]


@pytest.mark.slow
def test_the_line_at_the_end_says_whether_the_weights_are_shown_to_help(
        tiny_base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, f"store={tmp_path}/store", f"base={tiny_base}", "questions=rules", "device=cpu", "batch=4",
             "epochs=1", "rate=1e-9"]
    assert train_main(["encoder", f"out_model={tmp_path}/m", *words]) == 0
    said = capsys.readouterr().out
    assert "questions that it did not learn, turn nDCG@10 went from" in said
    assert "it is not shown to help" in said
    found = json.loads((tmp_path / "m" / "training.json").read_text())["not_learned"]
    assert found["before"] == pytest.approx(found["after"], abs=1e-3)


def test_a_gain_is_shown_by_the_paired_test_alone() -> None:
    tables = lives(lives=6).load()
    questions = tables["gold"].filter("scored")["question"]
    assert not compare_pipelines(tables, questions, "corpus", LEXICAL, LEXICAL, Store(), 0)["shown"]
    chance = LEXICAL.replace(rerank=Rerank(scorer=Chance()))
    found = compare_pipelines(tables, questions, "corpus", chance, LEXICAL, Store(), 0)
    assert (found["groups"], found["questions"]) == (6, len(questions))
    assert found["after"] > found["before"]
    assert found["shown"] == (found["p"] <= .05)
    assert not compare_pipelines(tables, questions, "corpus", LEXICAL, chance, Store(), 0)["shown"]  # a loss is none
    assert compare_pipelines(tables, questions.clear(), "corpus", LEXICAL, LEXICAL, Store(), 0)["questions"] == 0


@pytest.mark.slow
def test_examples_go_through_files_of_which_a_part_may_be_taken(tiny_base: Path, tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    words = [*WORDS, f"store={tmp_path}/store"]
    assert train_main(["pairs", f"file={file}", "limit=6", *words]) == 0
    assert "6 evidence turns" in capsys.readouterr().out
    examples, record = read_examples(file)
    assert record["data"]["name"] == "synthetic"
    half, (source,), _ = sources.read_sources(recipe(tmp_path, tiny_base, pairs={file: .5}), [])
    assert half.height == 3
    assert set(source["learnt"]) == {text_hash(query) for query in half["query"]}  # not those that were left out
    assert train_main(["encoder", f"out_model={tmp_path}/m", f"pairs={{{file}: 1}}", "data=synthetic"]) == 1
    assert "data=synthetic configures examples, and these come from files" in capsys.readouterr().err


@pytest.mark.slow
def test_a_training_goes_on_from_an_update_and_its_own_holds_both(tiny_base: Path, tmp_path: Path) -> None:
    words = [*WORDS, f"store={tmp_path}/store"]
    encoder.train(recipe(tmp_path / "a", tiny_base, rate=1e-2, rank=32), words)
    file = tmp_path / "a" / "m" / encoder.UPDATE
    record = encoder.train(recipe(tmp_path / "b", tiny_base, rate=1e-9, rank=32, adapter=file), words)
    (first, before), (_, after) = read_update(file), read_update(tmp_path / "b" / "m" / encoder.UPDATE)
    assert record["adapter"] == first.digest
    earlier = json.loads((tmp_path / "a" / "m" / "training.json").read_text())["sources"]
    assert record["sources"][1:] == earlier
    assert earlier
    assert after.keys() == before.keys()
    for name in {name.removesuffix(".up") for name in before if name.endswith(".up")}:
        change, same = (part[f"{name}.up"].astype(float) @ part[f"{name}.down"] for part in (before, after))
        np.testing.assert_allclose(same, change, atol=2e-3 * np.abs(change).max())


HEAD = '{"format": "memlab-examples-1", "record": {}}'


@pytest.mark.parametrize(("text", "message"), [
    (HEAD + '\n{"query": "q", "positive": 3, "negatives": ["n"]}', "line 2: expected query, positive and negatives"),
    (HEAD + '\n{"query": "q", "positive": "p", "negatives": []}', "line 2: expected query, positive and negatives"),
    (HEAD + '\n{"query": "q", "positive"', "line 2"), (HEAD + "\n\n", "line 2"), (HEAD, "there is no example"),
    ("", "there is no example"), ("[]", "line 1: expected the format memlab-examples-1 and a record"),
    ('{"format": "memlab-examples-1"}', "line 1"), (HEAD.replace("{}", "[1]"), "line 1"), ("\udcff", "line 1"),
    (HEAD + '\n{"query": "\\ud800", "positive": "p", "negatives": ["n"]}', "line 2")])
def test_a_damaged_file_of_examples_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(MemlabError, match=message):
        read_examples(tmp_path / "a.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(("words", "message"), [
    (["dimensions=64"], "the base has 32 numbers a token"), (["max_length=600"], "the base reads 512 tokens"),
    (["questions=rules", "fold=1/2"], "fold holds questions of the data out"), (["device=cuda:7"], "device=cuda:7"),
    (["adapter=memory"], "was trained from other weights"), (["adapter=/nowhere"], "cannot be read")])
def test_what_keeps_a_training_from_starting_is_said_before_any_example_is_made(
        words: list[str], message: str, tiny_base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["encoder", f"out_model={tmp_path}/m", f"base={tiny_base}", "data.path=/nowhere", *words]
    assert train_main(line) in (1, 2)
    assert message in capsys.readouterr().err


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from("123456"), min_size=2, max_size=3,
                                                            unique=True)), min_size=1, max_size=30), st.integers(2, 4))
def test_in_no_batch_is_a_text_twice_or_an_answer_a_negative(rows: list[tuple[str, list[str]]], batch: int) -> None:
    lists = TrainingLists([query for query, _ in rows], [passages for _, passages in rows])
    found = distinct_batches(lists, batch)
    evidence: dict[str, set[str]] = {}
    for query, (positive, *_) in zip(lists.queries, lists.passages):
        evidence.setdefault(query, set()).add(positive)
    taken = list(zip(found.queries, map(tuple, found.passages)))
    for start in range(0, len(taken), batch):
        part = taken[start:start + batch]
        texts = [text for query, passages in part for text in {query, *passages}]
        assert len(texts) == len(set(texts))
        for number, (query, _) in enumerate(part):
            others = {text for other, (_, passages) in enumerate(part) if other != number for text in passages}
            assert not evidence[query] & others
    assert not Counter(taken) - Counter(zip(lists.queries, map(tuple, lists.passages)))
    assert len(taken) % batch == 0 or len(taken) < batch


def test_questions_that_rules_make_have_their_turn_as_evidence_and_look_at_no_gold() -> None:
    tables = lives().load()
    made = sources.with_rule_questions(tables)
    empty = {name: tables[name].clear() for name in ("questions", "gold", "evidence")}
    blind = sources.with_rule_questions(tables.updated(empty))
    assert made["questions"].height > 10
    for name in ("questions", "gold", "evidence"):
        assert made[name].equals(blind[name])
    said = with_text(made["turns"], made["texts"]).select("corpus", "session", "turn", "text")
    asked = made["evidence"].join(made["questions"], on="question").join(made["gold"], on="question")
    rows = asked.join(said, on=["corpus", "session", "turn"])
    assert rows.height == made["questions"].height
    assert all(answer in " ".join(text.split()) for answer, text in rows.select("answer", "text").iter_rows())


def test_questions_that_an_earlier_training_learned_are_not_measured() -> None:
    tables = lives().load()
    scored = tables["gold"].filter("scored")["question"]
    marked = sources.MarkedQuestions(tables, scored, "corpus", Store())
    texts = tables["questions"].filter(pl.col("question").is_in(scored.implode()))
    learned = frozenset(texts["text_id"].to_list()[:3])
    left = sources.drop_learned(marked, learned).questions
    assert left.to_list() == texts.filter(~pl.col("text_id").is_in(list(learned)))["question"].to_list()
    assert len(left) < len(scored)
    assert sources.drop_learned(marked, frozenset()).questions.equals(scored)


def test_a_log_without_a_statement_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").mkdir()
    line = {"corpus": "c", "session": "s", "said_on": "2024-05-01", "turns": [{"role": "user", "text": "Hm."}] * 2}
    (tmp_path / "log" / "sessions.jsonl").write_text(json.dumps(line) + "\n")
    words = ["data=custom", f"data.path={tmp_path / 'log'}", "questions=rules", *WORDS[len(LIVES):]]
    assert train_main(["pairs", f"file={tmp_path / 'a'}", *words, f"store={tmp_path}/store"]) == 1
    assert "the rules find no statement" in capsys.readouterr().err
