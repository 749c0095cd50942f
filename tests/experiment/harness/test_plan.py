"""The plan of a sweep: what is cached, what would be made, and that nothing is."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from chunking.semantic import Semantic
from omegaconf import OmegaConf
from rich.console import Console

from memlab.evaluate.attribution import Attribution
from memlab.experiment.harness.plan import Cost, cost, print_plan, remaining_costs
from memlab.experiment.harness.sweep import Sweep
from memlab.pipeline.stage import EmptyStage
from memlab.stages.judge.cases import Judges
from memlab.stages.judge.llm import LlmJudge
from memlab.stages.judge.rules import TokenF1
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.rerank_llm import LlmRerank
from memlab.stages.rank.select import Budget, Fixed
from memlab.stages.read.prompt import PromptTemplate
from memlab.stages.read.reader import Reader, SelfConsistency
from memlab.stages.search.dense import Dense
from memlab.stages.write.chunk import Levels, TurnChunker
from memlab.stages.write.context import LLMContext
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.small import arm, lexical
from tests.stages.search.world import Overlap
from tests.store.worker import DigestEmbedder

PLAIN = PromptTemplate(instructions="{history} {date} {question}")


def printed(root: Path, store: Store, *arms, width: int = 160) -> str:
    out = StringIO()
    sweep = Sweep(list(arms), [], None, OmegaConf.create({"out": str(root / "runs")}), {})
    print_plan(sweep, store, Console(file=out, width=width, soft_wrap=True))
    return out.getvalue()


def test_a_memory_that_fits_whole_is_said_first_with_what_to_set(tmp_path: Path, store: Store) -> None:
    large = printed(tmp_path, store, *(arm(tmp_path, lexical(select=Budget(tokens=100_000, twin=two))) for two in (
        True, False)))
    assert large.splitlines()[0].startswith("everything fits; set rank.select.tokens=")
    assert "everything fits" not in printed(tmp_path, store, arm(tmp_path, lexical(select=Budget(tokens=50))))


def test_the_cost_is_what_is_not_in_the_store(tmp_path: Path, store: Store) -> None:
    one = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder())))
    before = cost(one, store, set())
    assert not (tmp_path / "runs").exists()
    one.run(store)
    assert before.texts == store.made["vectors"] > 100
    assert before.characters > 20 * before.texts
    assert cost(one, store, set()) == Cost(0, 0, 0)


def test_pairs_are_counted_at_most(tmp_path: Path, store: Store) -> None:
    reranked = arm(tmp_path, lexical(rerank=Rerank(scorer=Overlap(), pool=7)))
    assert cost(reranked, store, set()).pairs == 16 * 7


def test_the_plan_names_arms_and_where_they_go_and_runs_nothing(tmp_path: Path, store: Store) -> None:
    some = [arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder()), select=Fixed(k=k)), name=f"k{k}")
            for k in (3, 5)]
    told = printed(tmp_path, store, *some)
    first, second = remaining_costs(some, store).values()
    assert second == Cost(0, 0, 0)
    assert first is not None
    assert f"all arms: {first.texts} texts to encode (" in told
    assert all(f" {a.name} " in told for a in some)
    assert f"folders: {some[0].arms_folder()}/" in told
    assert told.count("to run") == 2
    assert not (tmp_path / "runs").exists()
    assert not store.made
    some[0].run(store)
    told = printed(tmp_path, store, *some)
    assert (told.count("│ finished"), told.count("│ to run")) == (1, 1)
    assert "all arms: nothing to make" in told


def test_a_chunker_with_a_model_makes_the_cost_unknown_and_the_plan_goes_on(tmp_path: Path, store: Store) -> None:
    several = Levels(chunkers=[TurnChunker(), Semantic(embedder=DigestEmbedder())])
    some = [arm(tmp_path, lexical(chunk=chunk, dense=Dense(embedder=DigestEmbedder())), name=name)
            for name, chunk in (("one", Semantic(embedder=DigestEmbedder())), ("two", several), ("plain",
                                                                                                 TurnChunker()))]
    told = printed(tmp_path, store, *some)
    assert told.count(" ? ") == 2 * 4
    assert "not known before a model has split the sessions" in told
    assert not store.made


def test_a_plan_counts_replies_and_asks_no_model_for_them(tmp_path: Path, store: Store) -> None:
    chat = ScriptedChat(lambda prompt: "x")
    reader = Reader(chat=chat, prompt=PLAIN, vote=SelfConsistency(samples=3))
    asking = lexical(context=LLMContext(chat=chat), answer=reader,
                     judge=Judges(judges=(TokenF1(), LlmJudge(chat=chat, name="a"), LlmJudge(chat=chat, name="b"))),
                     rerank=LlmRerank(chat=chat, pool=5, mode="pointwise"))
    made = cost(arm(tmp_path, asking), store, set())
    assert made.replies == 160 + 16 * 5 + 16 * 3 + 16 * 2
    assert not chat.asked


def test_a_plan_counts_the_replies_of_an_attribution(tmp_path: Path, store: Store) -> None:
    chat = ScriptedChat(lambda prompt: "x")
    none = EmptyStage(writes=("context",))
    attribution = Attribution(reader=Reader(chat=chat, prompt=PLAIN, vote=SelfConsistency(samples=3)),
                              judge=LlmJudge(chat=chat), second=TokenF1(), crowded=none, alone=none, nothing=none,
                              wrong=3, right=2)
    made = cost(arm(tmp_path, lexical(attribute=attribution)), store, set())
    assert made.replies == 5 * (4 * 3 + 4)
    assert not chat.asked
