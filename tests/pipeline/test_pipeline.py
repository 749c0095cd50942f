"""The pipeline: every slot in its order, gold out of sight, nothing run twice."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.models.protocols import Message, Prompt
from memlab.pipeline import pipeline
from memlab.pipeline import tables as tables_module
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, Notes, Tables
from memlab.stages.judge.rules import TokenF1
from memlab.stages.oracle.upper_bounds import OracleSelect
from memlab.stages.rank.score import Score
from memlab.stages.rank.select import Fixed
from memlab.stages.read.pack import ByRank
from memlab.stages.search.bm25 import BM25
from memlab.stages.write.chunk import TurnChunker
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.small import lexical, lives

RUNS: Counter[str] = Counter()


@stage
class CountedTurn:
    """Writes turns, and counts how often."""

    reads: ClassVar = TurnChunker.reads
    writes: ClassVar = TurnChunker.writes
    mark: str = ""

    def run(self, tables: Tables, store: Store) -> Tables:
        RUNS[self.mark] += 1
        return TurnChunker().run(tables, store)


@stage
class Complaining:
    """Runs another stage, and notes that something was lost."""

    by: Any
    number: int = 1

    @property
    def reads(self) -> tuple[str, ...]:
        return self.by.reads

    @property
    def writes(self) -> tuple[str, ...]:
        return self.by.writes

    def run(self, tables: Tables, store: Store) -> Tables:
        notes = Notes()
        notes.add(self.number, 10, "things were lost")
        return self.by.run(tables, store).updated({"notes": notes.table()})


@stage
class Peeking:
    """Would select by gold."""

    reads: ClassVar = ("ranking", "evidence")
    writes: ClassVar = ("ranking",)

    def run(self, tables: Tables, store: Store) -> Tables:
        return tables.only(["ranking"])


@stage
class Undeclared:
    """Reads what it does not declare."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    def run(self, tables: Tables, store: Store) -> Tables:
        tables["gold"]
        return tables


@stage
class Misspelt:
    """Names a table that is none."""

    reads: ClassVar = ("rankings",)
    writes: ClassVar = ("ranking",)

    def run(self, tables: Tables, store: Store) -> Tables:
        return tables


@stage
class Numberless:
    """Gives no score that is a number."""

    reads: ClassVar = ("queries", "memories")
    writes: ClassVar = ("hits",)

    def run(self, tables: Tables, store: Store) -> Tables:
        query, memory = tables["queries"]["query"][0], tables["memories"]["memory"][0]
        row = [query, "lexical:turn", memory, float("nan"), 1]
        return Tables(hits=pl.DataFrame([row], SCHEMAS["hits"], orient="row"))


@stage
class Prophet:
    """Finds every memory of the question's corpus, whatever its date."""

    reads: ClassVar = ("queries", "questions", "memories")
    writes: ClassVar = ("hits",)

    def run(self, tables: Tables, store: Store) -> Tables:
        asked = tables["queries"].join(tables["questions"].select("question", "corpus"), on="question")
        found = asked.join(tables["memories"].select("corpus", "memory"), on="corpus").select(
            "query", pl.lit("prophet:turn").alias("lane"), "memory", pl.lit(1.0).alias("score"),
            pl.lit(1, pl.Int32).alias("rank"))
        return Tables(hits=found)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


def test_every_slot_runs_once_in_order_and_every_table_is_there(store: Store) -> None:
    seen: list[str] = []
    tables = lexical().run(lives().load(), store, lambda slot, seconds: seen.append(slot))
    assert seen == ["where", "chunk", "extract", "anchor", "context", "relate", "prune", "query", "classify",
                    "decompose", "expand", "time", "dense", "lexical", "late", "iterate", "neighbours", "score",
                    "boost", "rerank", "fuse", "window", "rollup", "measure", "select", "pack", "graph", "answer",
                    "judge", "attribute"]
    assert set(SCHEMAS) - set(tables) == {"attribution", "fields", "importances", "outdated"}  # unasked
    assert tables["answers"].is_empty()
    assert tables["verdicts"].is_empty()
    assert tables["ranking"]["question"].n_unique() == tables["context"]["question"].n_unique() == 16
    assert tables["ranking"].filter("selected").group_by("question").len()["len"].to_list() == [10] * 16


def test_the_default_is_the_documented_one_and_loads_no_model() -> None:
    made = Pipeline()
    assert [type(s).__name__ for _, s in made.stages()] == [
        "EmptyStage", "TurnChunker", *["EmptyStage"] * 5, "Original", "Rules", *["EmptyStage"] * 3, "Dense", "BM25",
        *["EmptyStage"] * 3, "Score", *["EmptyStage"] * 3, "TimeWindowBoost", "EmptyStage", "TokenCost", "Fixed",
        "ByRank", *["EmptyStage"] * 4]
    assert made.replace(select=Fixed(k=3)).select == Fixed(k=3)


def test_only_what_declares_it_may_see_gold() -> None:
    with pytest.raises(ValidationError, match="select: Peeking reads evidence; before the answers only"):
        lexical(select=Peeking())
    assert lexical(select=OracleSelect()).uses_oracle()
    assert not lexical().uses_oracle()
    assert lexical(judge=TokenF1()).judge
    with pytest.raises(ValidationError, match="select: TokenF1 reads gold"):
        lexical(select=TokenF1())


@pytest.mark.parametrize(("name", "slot"), [("dense", "dense"), ("dense:turn", "dense"), ("late_window", "late")])
def test_a_weight_for_a_lane_that_nobody_searches_is_told_before_the_run(name: str, slot: str) -> None:
    with pytest.raises(ValidationError, match=f"weights name '{name}', but search/{slot} is none"):
        lexical(score=Score(weights={name: 1.0}))
    assert lexical(score=Score(weights={"lexical:turn": 1.0})).score


def test_a_stage_is_handed_what_it_declares_and_returns_what_it_declares(store: Store) -> None:
    with pytest.raises(MemlabError, match="table 'gold' is not here .* declare it"):
        lexical(select=Undeclared()).run(lives().load(), store)
    with pytest.raises(MemlabError, match="table hits: Numberless gives scores that are not a number"):
        lexical(late=Numberless()).run(lives().load(), store)
    with pytest.raises(ValidationError, match="select: Misspelt names a table 'rankings'.*did you mean 'ranking'"):
        lexical(select=Misspelt())


def test_a_lane_that_sees_the_future_is_refused(store: Store) -> None:
    tables = lives().load()
    assert lexical(late=Prophet()).run(tables, store)["hits"].height
    early = tables["questions"].with_columns(pl.col("asked_on") - timedelta(days=200))
    with pytest.raises(MemlabError, match="lane prophet:turn retrieved memory .* later day"):
        lexical(late=Prophet()).run(tables.updated({"questions": early}), store)


def test_arms_run_what_they_share_once(store: Store) -> None:
    tables, RUNS["shared"] = lives().load(), 0
    made = [lexical(chunk=CountedTurn(mark="shared"), select=Fixed(k=k)).run(tables, store) for k in (3, 5, 10)]
    assert RUNS["shared"] == 1
    assert made[0]["memories"] is made[2]["memories"]
    assert [m["ranking"]["selected"].sum() for m in made] == [3 * 16, 5 * 16, 10 * 16]
    again = lives().load()  # equal tables, made anew
    assert again["turns"] is not tables["turns"]
    lexical(chunk=CountedTurn(mark="shared")).run(again, store)
    assert RUNS["shared"] == 1
    lexical(chunk=CountedTurn(mark="shared")).run(lives(seed=1).load(), store)
    assert RUNS["shared"] == 2


def test_large_tables_are_known_by_what_made_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    heights: list[int] = []

    def count(table: pl.DataFrame) -> str:
        heights.append(table.height)
        return digest(table)

    digest = tables_module.frame_digest
    monkeypatch.setattr(tables_module, "frame_digest", count)
    monkeypatch.setattr(tables_module, "LARGE", 1000)
    tables = lives().load()
    RUNS["known"] = 0
    made = [lexical(chunk=CountedTurn(mark="known"), lexical=BM25(k1=k1, unmatched=True),
                    select=Fixed(k=k)).run(tables, store)
            for k1, k in ((1.3, 3), (1.3, 5), (0.4, 5))]
    assert RUNS["known"] == 1
    assert made[0]["hits"].height > 1000
    assert made[0]["hits"].height not in heights
    assert made[0]["units"] is made[1]["units"]
    assert made[0]["hits"] is made[1]["hits"]
    assert not made[0]["hits"].equals(made[2]["hits"])
    assert not made[1]["ranking"].equals(made[2]["ranking"])


def test_notes_of_all_stages_are_kept_also_where_a_result_is_shared(store: Store) -> None:
    stages = {"chunk": Complaining(by=TurnChunker(), number=1), "lexical": Complaining(by=BM25(), number=2)}
    for k in (3, 5):
        arm = lexical(**stages, select=Complaining(by=Fixed(k=k), number=k))
        first = arm.run(lives().load(), store, until="measure")
        assert arm.run(first, store, after="measure")["notes"]["number"].to_list() == [1, 2, k]


def test_the_memory_of_results_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_MEMO_SIZE", 4)
    pipeline._MEMO.clear()
    tables, RUNS["bounded"] = lives().load(), 0
    for _ in range(2):
        lexical(chunk=CountedTurn(mark="bounded")).run(tables, store)
    assert RUNS["bounded"] == 2
    assert len(pipeline._MEMO) == 4


@stage
class Asking:
    """Packs as another stage does, after so many prompts to a chat model, each of three words."""

    chat: Any
    prompts: int
    reads: ClassVar = ByRank.reads
    writes: ClassVar = ByRank.writes

    def run(self, tables: Tables, store: Store) -> Tables:
        store.completions(self.chat, [Prompt((Message("user", f"say it {i}"),)) for i in range(self.prompts)], Notes())
        return ByRank().run(tables, store)


def test_replies_of_chat_models_are_counted_by_slot_also_if_they_are_stored_or_shared(tmp_path: Path) -> None:
    tables, chat = lives().load(), ScriptedChat(lambda _: "yes, of course")  # 3 words and a comma
    two = {"scripted": {"replies": 2, "prompt_tokens": 6, "completion_tokens": 8, "seconds": 0.0, "p50": 0.0,
                        "p95": 0.0}}
    for _ in range(2):  # the second time the stage does not run, and with another store its replies are found
        replies: dict[str, Any] = {}
        lexical(pack=Asking(chat=chat, prompts=2)).run(tables, Store(tmp_path), replies=replies)
        assert replies == {"pack": two}
    pipeline._MEMO.clear()
    found: dict[str, Any] = {}
    lexical(pack=Asking(chat=chat, prompts=2)).run(tables, Store(tmp_path), replies=found)
    assert found == {"pack": two}
    assert len(chat.asked) == 2
    silent: dict[str, Any] = {}
    lexical().run(tables, Store(tmp_path), replies=silent)
    assert silent == {}


@stage
class Keeping(Complaining):
    """Runs another stage, and claims to have spent a million seconds on what the store keeps."""

    def run(self, tables: Tables, store: Store) -> Tables:
        store.caching_seconds += 1e6
        return self.by.run(tables, store)


def test_costs_leave_out_what_the_store_keeps_and_are_known_to_arms_that_share_a_result(store: Store) -> None:
    tables = lives().load()
    costs: list[dict[str, float]] = [{}, {}]
    for k, spent in zip((3, 5), costs):
        lexical(lexical=Keeping(by=BM25()), select=Fixed(k=k)).run(tables, store, costs=spent)
    assert [*costs[0]] == [slot.name for slot in pipeline.SLOTS]
    assert costs[0]["lexical"] < -9e5
    assert costs[0]["lexical"] == costs[1]["lexical"]
    assert all(cost >= 0 for slot, cost in costs[0].items() if slot != "lexical")
