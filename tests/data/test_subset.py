"""Cutting and pooling: what stays, what goes, and that no evidence lies in both halves."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.benchmarks import Builder
from memlab.data.locomo import LoCoMo
from memlab.data.longmemeval import LongMemEval
from memlab.data.subset import Subset, half
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

DAY = datetime(2024, 1, 1)


def make(evidence_of: list[set[int]], corpora: list[int] | None = None) -> Tables:
    """Build a question each; its corpus holds the shared sessions it cites, one of its own, all by falling date."""
    build = Builder()
    owners = corpora or list(range(len(evidence_of)))
    for corpus in sorted(set(owners)):
        build.corpus(corpus=corpus, name=f"c{corpus}")
        cited = sorted(set().union(*(e for e, owner in zip(evidence_of, owners) if owner == corpus)))
        texts = [f"own {corpus}"] + [f"shared {s}" for s in cited]
        for session, text in enumerate(texts):
            build.session(corpus=corpus, session=session, said_on=DAY + timedelta(days=session - corpus),
                          name=f"s{session}")
            build.turn(corpus=corpus, session=session, turn=0, role="user", speaker=None, text=text, name="t")
        for question, owner in enumerate(owners):
            if owner == corpus:
                build.question(question=question, corpus=corpus, text=f"q {question}", asked_on=DAY,
                               name=f"q{question}", answer="a", category=["even", "odd"][question % 2],
                               abstain=False, scored=True)
                for shared in sorted(evidence_of[question]):
                    build.evidence(question=question, session=1 + cited.index(shared), turn=0)
    return build.tables()


def evidence_texts(tables: Tables) -> set[tuple[int, str]]:
    """(question, text of its evidence)."""
    rows = (
        tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question")
        .join(tables["turns"], on=["corpus", "session", "turn"]).join(tables["texts"], on="text_id")
    )
    return set(rows.select("question", "text").rows())


def test_limit_keeps_the_first_questions_with_their_numbers_and_drops_the_rest() -> None:
    tables = Subset(limit=2).cut(make([{0}, {1}, {2}]))
    assert tables["questions"]["question"].to_list() == [0, 1]
    assert tables["gold"]["question"].to_list() == [0, 1]
    assert set(tables["sessions"]["corpus"]) == {0, 1}
    assert set(tables["evidence"]["question"]) == {0, 1}
    assert set(tables["texts"]["text"]) == {"own 0", "own 1", "shared 0", "shared 1", "q 0", "q 1"}
    assert tables["ids"].filter(pl.col("kind") == "question")["name"].to_list() == ["q0", "q1"]


def test_types_keep_numbers_and_unknown_ones_are_refused() -> None:
    tables = Subset(types=["odd"]).cut(make([{0}, {1}, {2}, {3}]))
    assert tables["questions"]["question"].to_list() == [1, 3]
    with pytest.raises(MemlabError, match="did you mean 'odd'"):
        Subset(types=["ood"]).cut(make([{0}, {1}]))


def test_a_sample_has_every_type_and_corpus_in_proportion() -> None:
    tables = make([{i} for i in range(40)], corpora=[i % 4 // 2 for i in range(40)])
    kept = Subset(sample=8).cut(tables)
    drawn = kept["questions"].join(kept["gold"], on="question")
    assert drawn.group_by("category").len()["len"].to_list() == [4, 4]
    assert drawn.group_by("corpus").len()["len"].to_list() == [4, 4]
    shuffled = tables.updated({"questions": tables["questions"].reverse(), "gold": tables["gold"].reverse()})
    assert set(Subset(sample=8).cut(shuffled)["questions"]["question"]) == set(drawn["question"])
    assert set(Subset(sample=20).cut(tables)["questions"]["question"]) > set(drawn["question"])  # a larger one holds it


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(MemlabError, match="no question is left"):
        Subset(split="b").cut(make([{0}]))


@given(st.lists(st.sets(st.integers(0, 12), max_size=3), min_size=1, max_size=25), st.booleans())
def test_halves_are_disjoint_in_evidence_and_balanced(evidence_of: list[set[int]], together: bool) -> None:
    corpora = [i // 3 for i in range(len(evidence_of))] if together else None
    tables = make(evidence_of, corpora)
    sides = dict(zip(tables["questions"]["question"], half(tables)))
    held = {side: {s for q, e in enumerate(evidence_of) if sides[q] == side for s in e} for side in "ab"}
    assert not held["a"] & held["b"]
    if corpora:
        assert all(sides[q] == sides[p] for q in sides for p in sides if corpora[q] == corpora[p])
    if not together and all(not e for e in evidence_of):
        assert abs(list(sides.values()).count("a") - list(sides.values()).count("b")) <= 1


def test_halves_of_the_dev_files(shared_data: Path) -> None:
    locomo = [LoCoMo(path=shared_data / "locomo10.dev.json", split=side).load() for side in ("a", "b")]
    assert [t["questions"]["corpus"].n_unique() for t in locomo] == [3, 3]
    assert sum(t["questions"].height for t in locomo) == 1111
    oracle = shared_data / "longmemeval_oracle.dev.json.xz"
    halves = [LongMemEval(variant="oracle", path=oracle, split=side).load() for side in ("a", "b")]
    assert sorted(t["questions"].height for t in halves) == [75, 76]
    cited = [{text for _, text in evidence_texts(t)} for t in halves]
    assert not cited[0] & cited[1]
