"""The live memory: added to one by one it ranks as the batch does; nothing is lost, and what is forgotten is gone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memlab import Synthetic, compare, preset, run_pipeline
from memlab.data.benchmarks import Builder
from memlab.memory.memory import Memory, Session, Turn, search_texts
from memlab.memory.results import SearchResult, results
from memlab.models.protocols import Prompt
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import Stage, stage
from memlab.pipeline.tables import Tables, add_texts, frame
from memlab.stages.judge.rules import TokenF1
from memlab.stages.oracle.upper_bounds import OracleSelect
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.score import Score
from memlab.stages.rank.select import Budget, Fixed, Gap
from memlab.stages.rank.units import Rollup
from memlab.stages.read.prompt import PromptTemplate
from memlab.stages.read.reader import Reader
from memlab.stages.read.tokens import TokenCost
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.systems.memorystack.relations import MemoryStack
from memlab.stages.systems.rag_v1 import GraphBlock
from memlab.stages.write.chunk import Levels, Recursive, RoundChunker
from memlab.stages.write.chunk import SessionChunker as Sessions
from memlab.stages.write.chunk import TurnChunker as Turns
from memlab.stages.write.context import Header
from memlab.stages.write.extract_rules import RulesExtract
from memlab.stages.write.prune import Age
from memlab.stages.write.relations import Versions
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.small import content_of, lexical, lives
from tests.stages.search.world import Overlap, WordEmbedder
from tests.token_words import TokenWords

WORDS = WordEmbedder()
LEVELS = Levels(chunkers=(Turns(), Turns(roles=("user",)), RoundChunker(), Sessions()))
PIPELINES = {
    "hybrid_header": Pipeline(dense=Dense(embedder=WORDS), context=Header()),
    "levels_rrf": Pipeline(dense=Dense(embedder=WORDS), chunk=LEVELS, score=Score(method="rrf")),
    "pieces_budget": Pipeline(dense=Dense(embedder=WORDS), chunk=Recursive(size=120, overlap=20),
                              select=Budget(tokens=150)),
    "rollup": lexical(rollup=Rollup(method="dcg_sum")),
    "reranked": lexical(rerank=Rerank(scorer=Overlap(), pool=8)),
    "facts_instead": lexical(extract=RulesExtract(into="replace")),
    "related": Pipeline(dense=Dense(embedder=WORDS), relate=MemoryStack(embedder=WORDS, related=0.3)),
    "versioned": Pipeline(dense=Dense(embedder=WORDS), extract=RulesExtract(into="replace"),
                          relate=Versions(embedder=WORDS)),
    "pruned": lexical(prune=Age(days=60)),
    "graph": lexical(extract=RulesExtract(into="merge"), graph=GraphBlock()),
}
CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")])


def told() -> list[Session]:
    """The sessions of a generated life, with one that has no date, and two on one day."""
    tables = lives(lives=1, sessions=12).load()
    words = dict(tables["texts"].iter_rows())
    made = [Session(said_on, [Turn(role, words[text]) for role, text in tables["turns"].filter(
        pl.col("session") == number).select("role", "text_id").iter_rows()])
        for number, said_on in tables["sessions"].select("session", "said_on").iter_rows()]
    made[3] = Session(None, made[3].turns)
    made[5] = Session(made[4].said_on, made[5].turns)
    return made


def question() -> str:
    tables = lives(lives=1, sessions=12).load()
    asked = tables["texts"].filter(pl.col("text_id") == tables["questions"]["text_id"][2])["text"][0]
    return f"{asked} Was it with Ines, Otis, Nora or Rufus, or in Lisbon or Turin?"


def batch(sessions: Sequence[Session], asked: str, now: datetime, pipeline: Pipeline, store: Store) -> SearchResult:
    """What the pipeline finds over all sessions at once, in the order of time; ``session`` numbered as given."""
    order = sorted(range(len(sessions)), key=lambda i: (sessions[i].said_on is not None, sessions[i].said_on or 0))
    build = Builder()
    for place, i in enumerate(order):
        build.session(corpus=0, session=place, said_on=sessions[i].said_on, name="")
        for number, turn in enumerate(sessions[i].turns):
            build.turn(corpus=0, session=place, turn=number, role=turn.role, speaker=turn.speaker, text=turn.text,
                       name="")
    tables = build.tables().only(("texts", "sessions", "turns"))
    text_id, texts = add_texts(tables["texts"], [asked])
    question = frame("questions", {"question": [0], "corpus": [0], "text_id": text_id, "asked_on": [now]})
    tables = pipeline.without_judges().run(tables.updated({"texts": texts, "questions": question}), store)
    found = results(tables, pipeline, 1000)
    return SearchResult.of(tables, found.with_columns(
        pl.Series("session", [order[place] for place in found["session"]], pl.Int32)))


def assert_same(one: SearchResult, other: SearchResult) -> None:
    assert_frame_equal(one.results, other.results)
    assert (one.context, one.graph) == (other.context, other.graph)


@pytest.mark.parametrize("name", PIPELINES)
def test_one_by_one_ranks_as_all_at_once(tmp_path: Path, name: str) -> None:
    sessions, asked, pipeline = told(), question(), PIPELINES[name]
    random.Random(7).shuffle(sessions)  # noqa: S311 - dates out of order
    days = [datetime(2022, 1, 1), sorted(s.said_on for s in sessions if s.said_on)[6], datetime(2024, 12, 31)]
    store = Store(tmp_path / "store")
    with Memory(tmp_path / "live", pipeline) as memory:
        for n, session in enumerate(sessions):
            assert memory.add(session) == n
            for now in {4: days[1:2], 11: days}.get(n, []):  # asked in between: what is put together is added to
                assert_same(memory.look(asked, now, 1000), batch(sessions[:n + 1], asked, now, pipeline, store))
    expected = batch(sessions, asked, days[2], pipeline, store)
    assert expected.results.height > 3
    assert (expected.graph is not None) == (name == "graph")
    with Memory(tmp_path / "live", pipeline) as memory:  # loaded: written all at once
        assert_same(memory.look(asked, days[2], 1000), expected)
        assert_frame_equal(memory.search(asked, days[2]), expected.results.filter("selected"))


def test_keys_are_encoded_when_they_are_added_and_never_again(tmp_path: Path) -> None:
    pipeline = PIPELINES["hybrid_header"]
    with Memory(tmp_path, pipeline) as memory:
        memory.add(CAT)
        assert content_of(memory).store.made["vectors"] == 2
        memory.search("Which pet do I have?")
        assert content_of(memory).store.made["vectors"] == 3  # the question's
    with Memory(tmp_path, pipeline) as memory:
        memory.search("Which pet do I have?")
        assert (content_of(memory).store.made["vectors"], content_of(memory).store.found["vectors"]) == (1, 2)


def test_nothing_said_later_is_found(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        assert memory.search("cat", "2023-05-19").is_empty()
        assert memory.search("cat", datetime(2023, 5, 20, 1))["session"].to_list() == [0, 0]  # days count
        memory.add(Session("2999-01-01", [("user", "A cat of another time.")]))
        assert set(memory.search("cat")["session"]) == {0}  # the present, by the clock


@pytest.mark.parametrize("name", ["facts_instead", "related"])
def test_odd_sessions_are_kept_and_do_no_harm(tmp_path: Path, name: str) -> None:
    odd = [Session(None, [("user", "ok")]), Session("2023-01-01", []), Session("2023-01-01", [("user", " \n")]),
           Session("2023-01-02", [("assistant", "Hello there.")]),
           Session("2023-01-03", [("user", "私の猫の名前はタマです。"), ("assistant", "かわいいですね!")]),
           Session("2023-01-04", [("user", "word " * 20_000)]), Session("2023-01-04", [("user", "\ud83d\x00\x1b[31m")])]
    with Memory(tmp_path, PIPELINES[name]) as memory:
        assert memory.search("Anything?").is_empty()
        for session in odd:
            memory.add(session)
            memory.search("Which pet do I have?", "2023-01-05")
        before = memory.search("猫の名前", "2023-01-05", 100)
        assert len(memory) == len(odd)
    with Memory(tmp_path, PIPELINES[name]) as memory:
        assert_frame_equal(memory.search("猫の名前", "2023-01-05", 100), before)
        assert memory.list()["turns"].to_list() == [1, 0, 1, 1, 2, 1, 1]


def test_a_young_memory_has_not_every_kind_of_memory_that_is_weighted(tmp_path: Path) -> None:
    pipeline = lexical(chunk=LEVELS, late=WeightedLate(matcher=TokenWords(), kinds=("turn.user",)),
                       score=Score(weights={"late": 2.0, "lexical:turn.user": 0.5, "lexical:turn": 0.1}))
    with Memory(tmp_path, pipeline) as memory:
        memory.add(Session("2023-01-01", [("assistant", "Welcome, Tom.")]))
        assert memory.search("Tom", "2023-01-02")["text"].to_list() == ["Welcome, Tom."]
        memory.add(Session("2023-01-03", [("user", "Tom is my cat.")]))
        assert memory.search("Tom", "2023-01-02").height == 1  # of a later day, so not known yet
        found = memory.search("Tom", "2023-01-04")
        assert set(found["session"]) == {0, 1}
        assert {"late:turn.user", "lexical:turn.user"} <= set(found.columns)


def test_memory_is_given_back_after_the_first_question_to_new_sessions(tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    given_back: list[None] = []
    monkeypatch.setattr("memlab.memory.content.release_freed_memory", lambda: given_back.append(None))
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        for _ in range(3):
            memory.search("cat", "2100-01-01")
    assert len(given_back) == 1


def test_a_memory_is_shown_without_loading_it(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    memory = Memory(folder, lexical())
    assert repr(memory) == f"<Memory in {folder}, not loaded>"
    assert not folder.exists()
    with memory:
        memory.add(Session(CAT.said_on, CAT.turns, "<script>"))
        assert repr(memory) == f"<Memory in {folder}, 1 session>"
        found = memory.look("Which <b>cat</b>?")
    assert repr(found) == f"<SearchResult of 'Which <b>cat</b>?': {found.results.height} results>"


def test_pruning_takes_from_the_disk_what_searches_leave_out(tmp_path: Path) -> None:
    pipeline = lexical(prune=Age(days=90))
    old = [("user", "The tent is in the shed."), ("assistant", "Noted."),
           ("user", "Please remember I'm allergic to nuts.")]
    with Memory(tmp_path, pipeline, often=1) as memory:
        memory.add(Session("2023-01-01", [("user", "I rode a horse.")]))
        memory.add(Session("2023-01-01", old))
        memory.add(Session("2023-06-01", [("user", "I rode a camel.")]))
        memory.add(Session("2023-01-02", [("user", " ")]))
        assert set(memory.search("What did I ride, a horse?", "2023-06-02")["text"]) == {
            "Please remember I'm allergic to nuts.", "I rode a camel."}
        for _ in range(2):
            assert "horse" in memory.search("What did I ride, a horse?", "2023-02-01", 1)["text"][0]
        assert "horse" in memory.search("What did I ride, a horse?", "2023-06-02", 1)["text"][0]  # often asked for
        assert memory.prune("2023-02-01").is_empty()
        assert memory.prune("2023-06-02").rows() == [(1, [0, 1])]
        assert memory.prune("2023-06-02").is_empty()
        assert memory.prune("2024-06-02").rows() == [(2, None)]
        assert memory.list()["session"].to_list() == [0, 1, 3]  # a blank session was no memory
    with Memory(tmp_path, lexical()) as memory:  # nothing is pruned any more, and nothing comes back
        assert sorted(memory.search("tent camel horse", "2024-06-02", 9)["text"]) == [
            "I rode a horse.", "Please remember I'm allergic to nuts."]
        assert memory.prune("2030-01-01").is_empty()


def test_history_tells_when_something_held(tmp_path: Path) -> None:
    pipeline = Pipeline(dense=Dense(embedder=WORDS), relate=Versions(embedder=WORDS))
    with Memory(tmp_path, pipeline) as memory:
        memory.add(Session("2023-09-01", [("user", "I live in Lisbon."), ("assistant", "Nice.")]))
        memory.add(Session("2022-03-01", [("user", "I live in Oslo.")]))  # told later, said earlier
        told_of = memory.history("I live in", "2024-01-01", k=2)
        assert told_of.select("text", "valid_from", "valid_to", "session").rows() == [
            ("user: I live in Oslo.", datetime(2022, 3, 1), datetime(2023, 9, 1), 1),
            ("user: I live in Lisbon.", datetime(2023, 9, 1), None, 0)]
        before = memory.history("I live in", "2023-01-01", k=2)
        assert before.select("text", "valid_to").rows() == [("user: I live in Oslo.", None)]  # not yet known


def test_answers_come_from_the_reader(tmp_path: Path) -> None:
    def rule(prompt: Prompt) -> str:
        said = prompt.messages[-1].content
        return "Tom" if "named Tom" in said and "2023-06-01" in said else "I cannot tell."

    template = PromptTemplate(instructions="{history}\nToday is {date}. {question}")
    reader = Reader(chat=ScriptedChat(rule), prompt=template)
    with Memory(tmp_path / "a", lexical(answer=reader, judge=TokenF1())) as memory:
        assert memory.answer("What is my cat called?", "2023-06-01") == "I cannot tell."
        memory.add(CAT)
        assert memory.answer("What is my cat called?", "2023-06-01") == "Tom"
        assert memory.look("What is my cat called?", "2023-06-01").answer == "Tom"
    with Memory(tmp_path / "b", lexical()) as memory, pytest.raises(MemlabError, match="has no reader"):
        memory.answer("What is my cat called?")


def test_a_ranking_asks_no_reader_and_measures_no_tokens_that_its_selection_does_not_count(tmp_path: Path) -> None:
    measured = []

    @stage
    class Counted(TokenCost):
        def run(self, tables: Tables, store: Store) -> Tables:
            measured.append(tables["ranking"].height)
            return super().run(tables, store)

    @stage
    class Derived(Fixed):
        def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
            return Tables(ranking=tables["ranking"].with_columns(selected=pl.col("tokens") > 0))

    chat = ScriptedChat(lambda _: "Tom")
    reader = Reader(chat=chat, prompt=PromptTemplate(instructions="{history} {date} {question}"))
    for select, times in ((Fixed(k=2), 0), (Gap(), 0), (Budget(tokens=50), 1), (Derived(), 1)):
        measured.clear()
        chat.asked.clear()
        pipeline = lexical(answer=reader, measure=Counted(), select=select)
        with Memory(tmp_path / type(select).__name__, pipeline) as memory:
            memory.add(CAT)
            found = memory.search("cat", "2023-06-01")
            assert (len(measured), len(chat.asked)) == (times, 0)
            assert_frame_equal(memory.look("cat", "2023-06-01").results, found)
            assert (len(measured), len(chat.asked)) == (times + 1, 1)


def test_a_list_of_texts_is_searched_and_pipelines_are_compared_in_a_few_lines(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = search_texts(["I adopted a cat.", "The boat is blue."], "Which colour has the boat?", 1, lexical())
    assert found.select("session", "text").rows() == [(1, "The boat is blue.")]
    monkeypatch.chdir(tmp_path)
    data = Synthetic(lives=1, sessions=10, questions=4)
    runs = [run_pipeline(preset("search/dense=none", f"rank.select.k={k}"), data, name=f"k{k}") for k in (1, 5)]
    assert "k5" in str(compare(*runs))


def test_a_pipeline_that_looks_at_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"select: OracleSelect reads evidence.* choose a technique"):
        Memory(tmp_path, lexical(select=OracleSelect()))


def test_a_stage_that_fails_adds_nothing(tmp_path: Path) -> None:
    @stage
    class Fails:
        reads: ClassVar = ("memories",)
        writes: ClassVar = ("memories",)

        def run(self, tables: Tables, store: Store) -> Tables:
            if tables["sessions" if "sessions" in tables else "memories"].height > 2:
                raise RuntimeError("the server is gone")
            return tables

    failing: Stage = Fails()
    with Memory(tmp_path, lexical(context=failing)) as memory:
        memory.add(CAT)
        with pytest.raises(RuntimeError):
            memory.add(Session("2023-05-21", [("user", word) for word in "abc"]))
        assert len(memory) == 1
        assert memory.add(CAT) == 1
    with Memory(tmp_path, lexical()) as memory:
        assert memory.list()["turns"].to_list() == [2, 2]
