from __future__ import annotations

import re
from datetime import timedelta

import polars as pl
import pytest

from memlab.data.dataset import Dataset
from memlab.data.synthetic import lexicon
from memlab.data.synthetic.dataset import TYPES, Synthetic
from memlab.experiment.config.instantiate import make_dataset
from memlab.pipeline.tables import SCHEMAS
from memlab.support.errors import MemlabError

SMALL = {"lives": 3, "sessions": 20}


@pytest.fixture(scope="module")
def rows():
    """Every question of some lives with its texts: (category, question, answer, [(day, session, text)], abstain)."""
    return table_of(Synthetic(lives=8, seed=3))


def table_of(data: Synthetic):
    tables = data.load()
    texts = dict(tables["texts"].iter_rows())
    turns = {(c, s, t): texts[h] for c, s, t, _, _, h in tables["turns"].iter_rows()}
    days = {(c, s): d for c, s, d in tables["sessions"].iter_rows()}
    gold = {row["question"]: row for row in tables["gold"].iter_rows(named=True)}
    out = []
    for question, corpus, text, asked_on in tables["questions"].iter_rows():
        cited = tables["evidence"].filter(question=question).sort("session", "turn")
        proof = [(days[corpus, s], s, turns[corpus, s, t]) for _, s, t in cited.iter_rows()]
        assert all(day <= asked_on for day, *_ in proof)
        known = gold[question]
        out.append((known["category"], texts[text], known["answer"], proof, known["abstain"]))
    return out


def test_the_same_seed_gives_the_same_lives_and_more_lives_change_none():
    one, again, other = Synthetic(**SMALL).load(), Synthetic(**SMALL).load(), Synthetic(seed=1, **SMALL).load()
    assert one.digest(SCHEMAS) == again.digest(SCHEMAS) != other.digest(SCHEMAS)
    more = Synthetic(lives=4, sessions=20).load()
    for name in ("turns", "sessions", "questions"):
        assert more[name].filter(pl.col("corpus") < 3).equals(one[name])


def test_the_default_is_small_has_all_types_and_alternating_roles():
    data = make_dataset("synthetic")
    assert isinstance(data, Dataset)
    assert data == Synthetic()
    tables = data.load()
    assert tables["questions"].height == 260
    assert tables["turns"].height == 4800
    assert set(tables["gold"]["category"]) == set(TYPES)
    assert tables["gold"]["abstain"].sum() == 20
    assert (tables["gold"]["abstain"] == ~tables["gold"]["scored"]).all()
    assert tables["turns"].filter((pl.col("role") == "user") != (pl.col("turn") % 2 == 0)).is_empty()
    assert data.grouping() == "corpus"
    assert "demonstration" in data.notes()[0]


def test_counted_things_are_all_evidence(rows):
    counted = [(answer, proof) for category, _, answer, proof, _ in rows if category == "multi-session"]
    assert all(int(answer) == len({text for *_, text in proof}) for answer, proof in counted)
    assert all(2 <= len(proof) <= 10 for _, proof in counted)
    assert len({len(proof) for _, proof in counted}) > 4


def test_answers_stand_in_the_evidence(rows):
    for category, _, answer, proof, abstain in rows:
        if category in ("single-session-user", "single-session-assistant") and not abstain:
            assert len(proof) == 1
            assert answer in proof[0][2]
        if category == "knowledge-update":
            (first, *_, old), (second, *_, new) = proof
            assert first < second
            assert answer in new
            assert answer not in old


def test_temporal_answers_follow_from_the_dates(rows):
    checked = 0
    for category, question, answer, proof, _ in rows:
        if category != "temporal-reasoning":
            continue
        when = [day.date() - timedelta(days="yesterday" in text) for day, _, text in proof]
        if question.startswith("How many"):
            assert answer.split()[0] == str(abs((when[1] - when[0]).days))
            checked += 1
        else:
            early = proof[when.index(min(when))][2]
            event = next(e for e in lexicon.EVENTS if any(t.split("{when}")[0] in early for t in e.tell))
            assert answer in {f"The day when {name}" for name in event.name}
            checked += 1
    assert checked == 24


def test_what_cannot_be_answered_was_told_of_others_only():
    tables = Synthetic(lives=6, paraphrase=0.0).load()
    texts = dict(tables["texts"].iter_rows())
    facts = {fact.ask[0]: fact for fact in lexicon.FACTS}
    unknown = tables["questions"].join(tables["gold"].filter("abstain"), on="question")
    assert unknown.height == 6
    for corpus, text in unknown.select("corpus", "text_id").iter_rows():
        fact = facts[texts[text]]
        said = " ".join(texts[h] for h in tables["turns"].filter(corpus=corpus)["text_id"])
        mine, theirs = (re.escape(t).replace(r"\{v\}", "[^.]+?").replace(r"\{who\}", "[^.]+?")
                        for t in (fact.tell[0], fact.distractor))
        assert not re.search(mine, said)
        assert re.search(theirs, said)


def test_forty_pieces_of_evidence_fit_and_what_does_not_fit_is_said():
    tables = Synthetic(lives=1, sessions=60, evidence=[40, 40]).load()
    assert tables["evidence"].group_by("question").len()["len"].max() == 40
    with pytest.raises(MemlabError, match="no room"):
        Synthetic(lives=1, sessions=4).load()
    with pytest.raises(MemlabError, match="all used up"):
        Synthetic(lives=1, sessions=90, questions=60).load()


@pytest.mark.parametrize(
    "wrong", [{"evidence": [0, 3]}, {"evidence": [5, 3]}, {"evidence": [2, 41]}, {"types": ["user"]}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(MemlabError):
        Synthetic(**wrong)
