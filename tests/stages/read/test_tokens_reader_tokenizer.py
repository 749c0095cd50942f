"""The reader's tokenizer counts what every pack shows: exactly, although its counts do not add up."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.experiment.harness.sweep import read
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.tokenizer import Tokenizer, prompt_counter
from memlab.pipeline.tables import Tables
from memlab.pipeline.token_counter import Words, count_tokens, counting, tokens_of
from memlab.stages.entity_graph import Neighbourhood
from memlab.stages.rank.select import Fixed
from memlab.stages.read import tokens
from memlab.stages.read.pack import ByDate, ByRank, FullContext
from memlab.stages.read.tokens import ReaderTokens, TokenCost
from memlab.stages.systems.elizaos import BudgetShares
from memlab.stages.systems.rag_v1 import ENTITIES, GraphBlock
from memlab.store import Store
from memlab.support.errors import Faults, MemlabError
from tests.chats import ScriptedChat
from tests.small import arm, lexical, lives, words
from tests.stages.read.tiny import own_count, reader, tokenizer
from tests.stages.read.world import world, worlds

QUIET = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer(tmp_path_factory.mktemp("tiny"))


def exact(tables: Tables, folder: Path) -> None:
    """Hold the tokens of every row of context against the tokenizer's own count."""
    texts = dict(tables["texts"].iter_rows())
    assert tables["context"]["tokens"].to_list() == [own_count(folder, texts[t]) for t in tables["context"]["text_id"]]


def test_it_counts_as_the_tokenizer_does(folder: Path) -> None:
    texts = pl.Series(["user: hi", "[2023-05-20]\nuser: hi", "", None, "記憶", "user: hi"], dtype=pl.String)
    with counting(reader(folder)):
        expected = [None if t is None else own_count(folder, t) for t in texts]
        assert count_tokens(texts).to_list() == expected
        frame = pl.DataFrame({"a": texts, "b": texts.reverse(), "g": [0, 0, 0, 1, 1, 1]})
        both = frame.select(count_tokens(pl.col("a")), count_tokens(pl.col("b")),
                            sums=count_tokens(pl.col("a")).cum_sum(reverse=True).over("g"))
        assert both["a"].to_list() == expected
        assert both["b"].to_list() == expected[::-1]
        assert both["sums"].to_list()[0] == sum(n or 0 for n in expected[:3])
        assert tokens_of("user") == 1
        assert tokens_of("\nuser") == 4  # more than its parts: what is joined must be counted joined


def test_a_text_is_counted_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    counts = Tokenizer.counts
    monkeypatch.setattr(Tokenizer, "counts", lambda self, texts: asked.extend(texts) or counts(self, texts))
    monkeypatch.setattr(prompt_counter(folder), "known", {})
    with counting(reader(folder)):
        for _ in range(2):
            assert count_tokens(pl.Series(["a", "bb", "a"])).to_list() == [1, 2, 1]
        assert asked == ["", "a", "bb"]
        monkeypatch.setattr(tokens, "CACHE_SIZE", 4)
        assert count_tokens(pl.Series(["a", "ccc", "dd"])).to_list() == [1, 3, 2]  # too many: begun anew
        assert count_tokens(pl.Series(["a", "ccc"])).to_list() == [1, 3]
    assert asked == ["", "a", "bb", "ccc", "dd", "a"]


def windows(max_tokens: int, **more: str) -> BudgetShares:
    return BudgetShares(budget=max_tokens + 2, system=1, message=1, history=.5, retrieved=.5, **more)


PACKS = [ByRank, ByDate, windows, lambda value, **more: FullContext(**more)]


@QUIET
@given(worlds(), st.integers(1, 200), st.sampled_from(PACKS), st.sampled_from(["turn", "round"]))
def test_every_row_of_context_is_counted_exactly_and_no_budget_is_overdrawn(
        folder: Path, tables: Tables, most: int, pack, value: str) -> None:
    with counting(reader(folder)):
        made = tables.updated(pack(value=value, max_tokens=most).run(tables, Store()))
    exact(made, folder)
    assert made["context"]["tokens"].sum() <= most


@pytest.mark.parametrize("pack", [
    lambda most: FullContext(max_tokens=most),
    lambda most: BudgetShares(budget=most + 2, system=1, message=1, history=1, retrieved=0)])
def test_a_session_is_cut_where_its_text_fits(folder: Path, pack) -> None:
    tables = world([[("user", letter) for letter in "abcd"]])
    lines = [f"user: {letter}" for letter in "abcd"]
    ends = ["[2023-05-20]\n" + "\n\n".join(lines[n:]) for n in range(4)]
    for most in range(1, own_count(folder, ends[0]) + 2):
        with counting(reader(folder)):
            made = tables.updated(pack(most).run(tables, Store()))
        exact(made, folder)
        fitting = [end for end in ends if own_count(folder, end) <= most]
        assert shown_texts(made) == fitting[:1], most


def shown_texts(tables: Tables) -> list[str]:
    texts = dict(tables["texts"].iter_rows())
    return [texts[text] for text in tables["context"]["text_id"]]


def test_a_graph_block_is_cut_where_its_text_fits(folder: Path) -> None:
    people = [(f"Ann {letter}", "person", "") for letter in "ABCD"]
    lines = [ENTITIES, *(f"- {name} (person)" for name, *_ in people)]
    with counting(reader(folder)):
        for n in range(2, len(lines)):
            cut, longer = ("\n".join(lines[:m]) for m in (n, n + 1))
            for most in (own_count(folder, cut), own_count(folder, longer) - 1):
                assert GraphBlock(max_tokens=most)._block(Neighbourhood(people, [])) == cut


def test_arms_that_count_differently_share_no_counts(folder: Path, tmp_path: Path) -> None:
    tables, store = lives().load(), Store(tmp_path)
    plain, other = (lexical(measure=TokenCost(), select=Fixed(k=7), tokens=by) for by in (Words(), reader(folder)))
    once = [p.run(tables, store) for p in (plain, other, plain, other)]
    exact(once[1], folder)
    for name in ("ranking", "context"):
        assert once[0][name].equals(once[2][name])
        assert once[1][name].equals(once[3][name])
        assert (once[0][name]["tokens"] < once[1][name]["tokens"]).any()
    assert once[0]["context"].drop("tokens").equals(once[1]["context"].drop("tokens"))
    assert "tokens" not in dict(other.stages())
    assert arm(tmp_path, plain).digest() != arm(tmp_path, other).digest()


def test_of_the_model_only_the_tokenizer_counts(folder: Path, tmp_path: Path) -> None:
    one = reader(folder)
    again = ReaderTokens(chat=OpenAIChat(model="other", temperature=.7, tokenizer=tokenizer(tmp_path / "copy")))
    assert one.identity() == again.identity() != Words().identity()
    file = tokenizer(tmp_path / "new") / "tokenizer.json"
    model = json.loads(file.read_text())
    model["model"]["merges"] = model["model"]["merges"][1:]
    file.write_text(json.dumps(model))
    assert ReaderTokens(chat=OpenAIChat(model="tiny", tokenizer=file.parent)).identity() != one.identity()


def test_without_a_tokenizer_nothing_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLAB_HOME", str(tmp_path))
    for chat in (OpenAIChat(model="tiny"), ScriptedChat(str)):
        with pytest.raises(ValidationError, match="is not on this machine. Fix: chat.tokenizer=FOLDER"):
            ReaderTokens(chat=chat)
    with pytest.raises(Faults, match="read.tokens: the tokenizer of tiny is not on this machine"):
        read(words(tmp_path, "read/tokens=reader", "chat.model=tiny"))
    tokenizer(tmp_path / "models" / "tiny")  # where memlab.commands.serve puts a model's files
    (one,) = read(words(tmp_path, "read/tokens=reader", "chat.model=tiny")).arms
    assert one.pipeline.tokens == ReaderTokens(chat=OpenAIChat(model="tiny"))


def test_a_broken_tokenizer_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    broken, ran = ReaderTokens(chat=OpenAIChat(model="tiny", tokenizer=tmp_path)), list[str]()
    with pytest.raises(MemlabError, match="the tokenizer cannot be read"):
        lexical(tokens=broken).run(lives().load(), Store(tmp_path), lambda slot, _: ran.append(slot))
    assert not ran
