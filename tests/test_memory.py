"""The live memory: added to one by one it ranks as the batch does; nothing is lost, and what is forgotten is gone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memlab.data.benchmarks import Builder
from memlab.errors import MemlabError
from memlab.judge.rules import TokenF1
from memlab.live.results import SearchResult, results, without_judges
from memlab.memory import Memory, Session, Turn
from memlab.models.protocols import Prompt
from memlab.oracle.upper_bounds import OracleSelect
from memlab.pipeline import Pipeline
from memlab.rank.rerank import Rerank
from memlab.rank.score import Score
from memlab.rank.select import Budget, ByType, Fixed, Gap, need
from memlab.rank.units import Rollup
from memlab.read.pack import BySession
from memlab.read.prompt import PromptTemplate
from memlab.read.reader import Reader
from memlab.read.tokens import TokenCost
from memlab.search.dense import Dense
from memlab.search.late_interaction import WeightedLate
from memlab.stage import EmptyStage, Stage, stage
from memlab.store import Store
from memlab.systems.memorystack.relations import MemoryStack
from memlab.systems.rag_v1 import GraphBlock
from memlab.tables import Tables, add_texts, frame
from memlab.write.anchor import ResolveDates
from memlab.write.chunk import Levels, Recursive, RoundChunker
from memlab.write.chunk import SessionChunker as Sessions
from memlab.write.chunk import TurnChunker as Turns
from memlab.write.context import Header
from memlab.write.extract_rules import RulesExtract
from memlab.write.prune import Age
from memlab.write.relations import Versions
from tests.chats import ScriptedChat
from tests.search.world import Overlap, WordEmbedder
from tests.small import content_of, lexical, lives
from tests.token_words import TokenWords

WORDS = WordEmbedder()
LEVELS = Levels(chunkers=(Turns(), Turns(roles=("user",)), RoundChunker(), Sessions()))
PIPELINES = {
    "lexical": lexical(),
    "dense": Pipeline(dense=Dense(embedder=WORDS), lexical=EmptyStage(writes=("hits",))),
    "hybrid_header": Pipeline(dense=Dense(embedder=WORDS), context=Header()),
    "levels_rrf": Pipeline(dense=Dense(embedder=WORDS), chunk=LEVELS, score=Score(method="rrf")),
    "pieces_budget": Pipeline(dense=Dense(embedder=WORDS), chunk=Recursive(size=120, overlap=20),
                              select=Budget(tokens=150)),
    "sessions": lexical(chunk=Sessions(), select=Fixed(k=3)),
    "rollup": lexical(rollup=Rollup(method="dcg_sum"), pack=BySession()),
    "reranked": lexical(rerank=Rerank(scorer=Overlap(), pool=8)),
    "late": lexical(late=WeightedLate(matcher=TokenWords())),
    "facts": lexical(extract=RulesExtract(into="keys"), score=Score(level="turn")),
    "facts_instead": lexical(extract=RulesExtract(into="replace")),
    "related": Pipeline(dense=Dense(embedder=WORDS), relate=MemoryStack(embedder=WORDS, related=0.3)),
    "versioned": Pipeline(dense=Dense(embedder=WORDS), extract=RulesExtract(into="replace"),
                          relate=Versions(embedder=WORDS)),
    "pruned": lexical(prune=Age(days=60)),
    "anchored": lexical(anchor=ResolveDates(), context=Header()),
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
    tables = without_judges(pipeline).run(tables.updated({"texts": texts, "questions": question}), store)
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
    with Memory(tmp_path / "live", pipeline, store) as memory:  # on a store that experiments use
        assert_same(memory.look(asked, days[2], 1000), expected)


def test_an_addition_runs_the_stages_of_a_session_on_that_session_alone(tmp_path: Path) -> None:
    seen: list[list[int]] = []

    @stage
    class Watched:
        reads: ClassVar = Turns.reads
        writes: ClassVar = Turns.writes

        def run(self, tables: Tables, store: Store) -> Tables:
            seen.append(tables["sessions"]["session"].to_list())
            return Turns().run(tables, store)

    with Memory(tmp_path, lexical(chunk=Watched())) as memory:
        for session in told()[:3]:
            memory.add(session)
        memory.search("What?")
    assert seen == [[], [0], [1], [2]]


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


@pytest.mark.parametrize("name", ["hybrid_header", "facts_instead", "related", "pruned"])
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


def test_a_memory_of_one_word(tmp_path: Path) -> None:
    with Memory(tmp_path, PIPELINES["hybrid_header"]) as memory:
        memory.add(Session("2023-01-01", [("user", "Tom")]))
        found = memory.search("Who?", "2023-01-02")
        assert found.select("date", "speaker", "text").rows() == [(datetime(2023, 1, 1), "user", "Tom")]
        with pytest.raises(MemlabError, match="the question is blank"):
            memory.search(" ")


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


def test_the_same_session_twice(tmp_path: Path) -> None:
    named = Session(CAT.said_on, CAT.turns, "chat-1")
    with Memory(tmp_path, lexical()) as memory:
        assert [memory.add(CAT), memory.add(CAT)] == [0, 1]  # a second one, as in a batch
        assert [memory.add(named), memory.add(named)] == [2, 2]
        with pytest.raises(MemlabError, match="there is a session 'chat-1' with other words"):
            memory.add(Session(CAT.said_on, [("user", "Other words.")], "chat-1"))
        assert len(memory) == 3
    with Memory(tmp_path, lexical()) as memory:
        assert memory.add(named) == 2
        assert memory.list()["name"].to_list() == [None, None, "chat-1"]


def test_memory_is_given_back_after_the_first_question_to_new_sessions(tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    given_back: list[None] = []
    monkeypatch.setattr("memlab.live.content.release_freed_memory", lambda: given_back.append(None))
    some = told()
    for store in (None, Store(tmp_path / "shared")):
        given_back.clear()
        with Memory(tmp_path / ("own" if store is None else "other"), Pipeline(), store) as memory:
            counts = []
            for session in some[:2]:
                memory.add(session)
                for _ in range(3):
                    memory.search("cat", "2100-01-01")
                    counts.append(len(given_back))
        assert counts == [1, 1, 1, 2, 2, 2]


def test_a_memory_is_shown_without_loading_it(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    memory = Memory(folder, lexical())
    assert repr(memory) == f"<Memory in {folder}, not loaded>"
    assert "not loaded" in memory._repr_html_()
    assert not folder.exists()
    with memory:
        memory.add(Session(CAT.said_on, CAT.turns, "<script>"))
        assert repr(memory) == f"<Memory in {folder}, 1 session>"
        assert "<td>&lt;script&gt;</td>" in memory._repr_html_()
        found = memory.look("Which <b>cat</b>?")
    assert repr(found) == f"<SearchResult of 'Which <b>cat</b>?': {found.results.height} results>"
    assert "Which &lt;b&gt;cat" in found._repr_html_()
    assert "<b>" not in found._repr_html_()


@pytest.mark.parametrize(("said_on", "turns", "fault"), [
    ("20 May", [], "'20 May' is no date.*write 2023-05-20"),
    (20230520, [], "expected a date, got int"),
    (None, [("bot", "Hi")], "there is no role 'bot'.*assistant, user"),
    (None, [("user", 3)], "expected text, got int"),
    (None, ["Hi"], "'Hi' is no turn"),
    (None, "Hi", "expected a list of turns, got str"),
])
def test_a_session_that_is_none(said_on: object, turns: object, fault: str) -> None:
    with pytest.raises(MemlabError, match=fault):
        Session(said_on, turns)  # type: ignore[arg-type]


def test_what_is_forgotten_is_gone_from_the_disk(tmp_path: Path) -> None:
    secret, other = "My bank code is zebrafish.", "My aunt lives in Oslo."
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", other), ("assistant", "I see."), ("user", secret)], "bank"))
        memory.add(CAT)
        hit = memory.search("bank code", "2023-06-01").row(0, named=True)
        assert (hit["session"], hit["turns"]) == (0, [2])
        memory.forget(hit["session"], hit["turns"])
        assert "zebrafish" not in " ".join(memory.search("bank code", "2023-06-01", 100)["text"])
        assert memory.list()["turns"].to_list() == [2, 2]
        with pytest.raises(MemlabError, match=r"session 0 has no turns \[2\].*\[0, 1\]"):
            memory.forget(0, [2])
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"zebrafish" not in everything
    assert b"Oslo" in everything
    with Memory(tmp_path, lexical()) as memory:
        assert memory.search("Oslo", "2023-06-01", 1)["turns"].to_list() == [[0]]
        memory.forget("bank")
        assert memory.list()["session"].to_list() == [1]
        for unknown in (0, "bank", 7):
            with pytest.raises(MemlabError, match="there is no session"):
                memory.forget(unknown)
        assert memory.add(CAT) == 2  # a number is not given again
        memory.forget(2)
    with Memory(tmp_path, lexical()) as memory:
        assert memory.add(Session("2023-05-20", [("user", other)], "bank")) == 3
        assert memory.search("Oslo", "2023-06-01", 1)["session"].to_list() == [3]


def test_vectors_of_what_is_forgotten_are_overwritten(tmp_path: Path) -> None:
    pipeline = Pipeline(dense=Dense(embedder=WORDS))
    with Memory(tmp_path, pipeline) as memory:
        memory.add(CAT)
        memory.add(Session("2023-05-21", [("user", "zebrafish"), ("user", "Lovely!")]))
        memory.forget(1)
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*.segment"))
    assert WORDS.vector("zebrafish").tobytes() not in everything
    assert WORDS.vector("Lovely!").tobytes() in everything  # another session says it too
    with Memory(tmp_path, pipeline) as memory:
        memory.search("cat")
        assert content_of(memory).store.made["vectors"] == 1
        memory.add(Session("2023-05-21", [("user", "zebrafish")]))
        assert content_of(memory).store.made["vectors"] == 2


def test_forgetting_all_but_a_batch_leaves_the_batch(tmp_path: Path) -> None:
    sessions, pipeline, now = told(), PIPELINES["levels_rrf"], datetime(2024, 12, 31)
    with Memory(tmp_path / "live", pipeline) as memory:
        for session in sessions:
            memory.add(session)
        for number in (0, 5, 11):
            memory.forget(number)
        left = [s for n, s in enumerate(sessions) if n not in (0, 5, 11)]
        found = memory.search(question(), now, 1000)
    expected = batch(left, question(), now, pipeline, Store(tmp_path / "store")).results
    assert_frame_equal(found.drop("session"), expected.drop("session"))


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


def test_history_of_facts_and_sessions_names_the_finest(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical(chunk=LEVELS)) as memory:
        memory.add(CAT)
        assert memory.history("cat", "2023-06-01")["turns"].to_list() == [[0], [1]]
        assert memory.history("cat", "2023-05-01").is_empty()


def test_answers_come_from_the_reader(tmp_path: Path) -> None:
    def rule(prompt: Prompt) -> str:
        said = prompt.messages[-1].content
        return "Tom" if "named Tom" in said and "2023-06-01" in said else "I cannot tell."

    template = PromptTemplate(instructions="{history}\nToday is {date}. {question}")
    reader = Reader(chat=ScriptedChat(rule), prompt=template)
    with Memory(tmp_path / "a", lexical(answer=reader, judge=TokenF1())) as memory:
        assert memory.answer("What is my cat called?", "2023-06-01").text == "I cannot tell."
        memory.add(CAT)
        answer = memory.answer("What is my cat called?", "2023-06-01")
        assert (answer.text, answer.results["session"].to_list()) == ("Tom", [0, 0])
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
    class Unmarked:
        reads: ClassVar = ("ranking",)
        writes: ClassVar = ("ranking",)

        def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
            return Tables(ranking=tables["ranking"].with_columns(selected=pl.col("rank") <= 1))

    @stage
    class Derived(Fixed):
        def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
            ranking = tables["ranking"]
            need(ranking, "tokens", "measure it")
            return Tables(ranking=ranking.with_columns(selected=(pl.col("tokens") > 0) & (pl.col("rank") <= 1)))

    @stage
    class Renamed(Fixed):
        """Another name for a constant."""

    chat = ScriptedChat(lambda _: "Tom")
    reader = Reader(chat=chat, prompt=PromptTemplate(instructions="{history} {date} {question}"))
    for select, times in ((Fixed(k=1), 0), (Gap(), 0), (ByType(), 0), (Renamed(k=1), 0), (Budget(tokens=5), 2),
                          (Unmarked(), 2), (Derived(), 2)):
        measured.clear()
        pipeline = lexical(answer=reader, measure=Counted(), select=select)
        with Memory(tmp_path / type(select).__name__, pipeline) as memory:
            memory.add(CAT)
            found = memory.search("cat", "2023-06-01")
            assert memory.history("cat", "2023-06-01").height == found.height == 1 + isinstance(select, ByType | Gap)
            assert len(measured) == times
            assert not chat.asked
            assert_frame_equal(memory.look("cat", "2023-06-01").results, found)
            assert (len(measured), len(chat.asked)) == (times + 1, 1)
        chat.asked.clear()


def test_a_pipeline_that_looks_at_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"select: OracleSelect reads evidence.* choose a technique"):
        Memory(tmp_path, lexical(select=OracleSelect()))


@pytest.mark.slow
def test_one_process_at_a_time(tmp_path: Path) -> None:
    code = f"from memlab.memory import Memory; Memory({str(tmp_path)!r}).list()"
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
        assert f"this memory is in use by process {os.getpid()} on " in other.stderr
        assert "close it there" in other.stderr
        with pytest.raises(MemlabError, match="in use by process"), Memory(tmp_path, lexical()) as second:
            second.list()
    with Memory(tmp_path, lexical()) as memory:
        assert len(memory) == 1
        child = os.fork()
        if not child:  # pragma: no cover - the forked process
            try:
                memory.list()
            except MemlabError as error:
                os._exit(17 if "forked" in str(error) else 18)
            os._exit(19)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        assert len(memory) == 1


def test_threads_add_and_ask(tmp_path: Path) -> None:
    with Memory(tmp_path, PIPELINES["hybrid_header"]) as memory:
        def work(n: int) -> None:
            for i in range(5):
                memory.add(Session("2023-05-20", [("user", f"thread {n} says {i}")]))
                memory.search("thread", "2023-06-01")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert memory.list()["session"].to_list() == list(range(20))


WORKER = """
import sys
from memlab.memory import Memory, Session
from tests.search.world import WordEmbedder
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
with Memory(sys.argv[1], Pipeline(dense=Dense(embedder=WordEmbedder()))) as memory:
    start = len(memory)
    for n in range(start, 10000):
        print(memory.add(Session("2023-05-20", [("user", f"fact number {n:05} " + "of many words " * 50)])), flush=True)
"""


@pytest.mark.slow
def test_killing_the_process_loses_no_addition(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    told_of = -1
    for seconds in (0.15, 0.4):
        process = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
                                   cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
        assert process.stdout
        told_of = int(process.stdout.readline())
        timer = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
        timer.start()
        told_of = max([told_of, *(int(line) for line in process.stdout if line.endswith("\n"))])
        assert process.wait() == -signal.SIGKILL
        with Memory(tmp_path, lexical()) as memory:
            assert len(memory) in (told_of + 1, told_of + 2)  # the one in progress may be whole
            words = memory.search(f"number {told_of:05}", "2023-06-01", 1)["text"][0]
        assert words.startswith(f"fact number {told_of:05} ")
    assert told_of >= 1


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
