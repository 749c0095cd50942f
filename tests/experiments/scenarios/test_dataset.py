from __future__ import annotations

import re

import polars as pl
import pytest
from scenarios.cases import CASES, CATEGORIES, EXAMPLES
from scenarios.dataset import ASKED_ON, WORDS, Scenarios

from memlab.data.dataset import Dataset
from memlab.experiment.harness.sweep import read
from memlab.pipeline.tables import GOLD, SCHEMAS
from memlab.support.errors import MemlabError

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def tables():
    return Scenarios().load()


def placed(tables) -> pl.DataFrame:
    """The turns that are pieces: corpus, session, turn, name, text, said_on."""
    named = tables["ids"].filter(kind="turn").filter(pl.col("name").str.contains("#")).drop("kind", "question")
    return (named.join(tables["turns"], on=["corpus", "session", "turn"])
            .join(tables["texts"], on="text_id").join(tables["sessions"], on=["corpus", "session"]))


def test_the_same_seed_gives_the_same_haystacks_and_another_seed_the_same_cases(tables):
    (arm,) = read(["plugins=[scenarios]", "data=scenarios"]).arms
    assert isinstance(arm.dataset, Dataset)
    assert arm.dataset == Scenarios()
    assert Scenarios().load().digest(SCHEMAS) == tables.digest(SCHEMAS)
    other = Scenarios(seed=1).load()
    assert other.digest(["turns"]) != tables.digest(["turns"])
    assert other["questions"].equals(tables["questions"])
    assert sorted(placed(other)["text"]) == sorted(placed(tables)["text"])
    assert Scenarios(seed=1).identity() != Scenarios().identity()


def test_every_case_is_a_corpus_whose_pieces_stand_where_the_ids_say(tables):
    rows = placed(tables)
    questions = dict(tables["ids"].filter(kind="question").select("name", "question").iter_rows())
    assert list(questions) == list(CASES)
    for name, scenario in CASES.items():
        mine = rows.filter(corpus=questions[name])
        said = {row["name"].partition("#")[2]: row for row in mine.iter_rows(named=True)}
        assert set(said) == {piece.name for piece in scenario.pieces}
        for piece in scenario.pieces:
            row = said[piece.name]
            assert row["text"] == piece.text
            assert (row["role"], row["speaker"]) == ("user", piece.file)
            assert (ASKED_ON.date() - row["said_on"].date()).days == piece.days
        cited = tables["evidence"].filter(question=questions[name]).select("session", "turn").rows()
        assert set(cited) == {(said[p.name]["session"], said[p.name]["turn"]) for p in scenario.pieces if p.evidence}


def test_what_is_expected_lies_in_no_table_that_a_stage_reads(tables):
    names = set(CATEGORIES) | set(CASES) | {e.label for s in CASES.values() for e in s.expect}
    for name in set(tables) - GOLD:
        for column in tables[name].select(pl.col(pl.String)).iter_columns():
            assert not names & set(column)
    assert set(tables["gold"]["category"]) == set(CATEGORIES)
    declined = {s.category for s in CASES.values() if not any(p.evidence for p in s.pieces)}
    assert declined == {"low-relevance", "abstention"}
    assert (tables["gold"]["abstain"] == tables["gold"]["category"].is_in(sorted(declined))).all()


def test_nothing_in_a_haystack_answers_a_question(tables):
    texts = dict(tables["texts"].iter_rows())
    known = {p.text for s in CASES.values() for p in s.pieces} | {d for s in CASES.values() for d in s.decoys}
    said = " ".join(texts[h] for h in tables["turns"]["text_id"].unique() if texts[h] not in known).lower()
    for word in ("saturn", "brazil", "chess", "passport", "lyon", "mortgage", "landlord", "emma", "idx_", "kubectl",
                 "staging", "webhook", "monolith", "osteria", "peanuts", "certificate", "ghent", "oksana"):
        assert word not in said
    assert all(re.search(r"\{(service|task)\}", note) for note in WORDS["note"])


def test_options_cut_the_questions_and_a_pile_names_its_pieces(tables):
    assert Scenarios(types=["time"], limit=2).load()["questions"].height == 2
    pile = Scenarios(pool=True)
    assert pile.name == "scenarios-pooled"
    names = placed(pile.load())["name"].to_list()
    assert len(names) == placed(tables).height
    assert all("/" in name for name in names)
    assert (pile.grouping(), Scenarios().grouping()) == ("evidence", "question")
    with pytest.raises(MemlabError, match="did you mean 'counting'"):
        Scenarios(types=["countin"])


def test_gimlis_own_examples_are_one_for_each_of_its_scenarios():
    data = Scenarios(examples=True)
    tables = data.load()
    assert data.name == "scenarios-examples"
    assert "examples" not in Scenarios().identity()
    assert tables["gold"]["category"].to_list() == list(CATEGORIES[:8])
    texts = dict(placed(tables).select("name", "text").iter_rows())
    assert texts["technical-term:ssl-mode#it"].endswith("SSL_MODE=verify-full.")
    assert set(texts) == {f"{name}#{piece.name}" for name, one in EXAMPLES.items() for piece in one.pieces}
    kinds = {(one.category, expect.kind) for one in EXAMPLES.values() for expect in one.expect}
    assert {("exact-match", "snippet"), ("cross-chunk", "path"), ("multi-concept", "near")} <= kinds
    of_cases = {(one.category, expect.kind) for one in CASES.values() for expect in one.expect}
    assert {pair for pair in of_cases if pair[0] in CATEGORIES[:8]} <= kinds
