from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import polars as pl
import pytest

from memlab.stages.systems.memorystack.relations import MemoryStack
from memlab.stages.write.contradiction import Claim, claims
from memlab.stages.write.relations import confidence, nearest
from tests.stages.write.relations.worlds import Angles, done, edges, told

KINDS = ("FOLLOWS", "RELATED_TO", "SAME_TOPIC", "ELABORATES", "CONTRADICTS", "SUPERSEDES")


def related(store, *rows, degrees=None, **settings):
    return done(MemoryStack(embedder=Angles(degrees or {}), **settings), told(*rows), store)


def same_direction(tables):
    """Return an embedder for which all texts have a cosine of 1."""
    return Angles(dict.fromkeys(tables["texts"]["text"], 0))


def alike(store, *rows, **settings):
    """Relate memories that all have a cosine of 1, so that each passes the gate."""
    return related(store, *rows, degrees={text: 0 for *_, text in rows}, **settings)


def test_two_corpora_share_nothing(store):
    tables = told((0, 0, "I like jazz."), (0, 0, "I don't like jazz."), corpus=[0, 1])
    assert edges(done(MemoryStack(embedder=Angles({"I like jazz.": 0, "I don't like jazz.": 0})), tables, store)) == []


def test_cosine_from_85_relates_and_from_90_is_the_same_topic_too(store):
    # cos 0, 20, 30, 35 degrees = 1, .94, .87, .82
    out = related(store, (0, 0, "a"), (1, 1, "b"), degrees={"a": 0, "b": 20})
    cosine = round(math.cos(math.radians(20)), 6)
    assert edges(out) == [(1, 0, "RELATED_TO", cosine), (1, 0, "SAME_TOPIC", cosine)]
    assert [e[2] for e in edges(related(store, (0, 0, "a"), (1, 1, "b"), degrees={"a": 0, "b": 30}))] == ["RELATED_TO"]
    assert edges(related(store, (0, 0, "a"), (1, 1, "b"), degrees={"a": 0, "b": 35})) == []


def test_only_the_nearest_are_looked_at_and_ties_go_to_the_earlier(store):
    rows = [(i, i, text) for i, text in enumerate(["a", "b", "c", "d"])]
    out = related(store, *rows, degrees={"a": 10, "b": -10, "c": 25, "d": 0}, most=1)
    # a and b lie equally near to d
    assert [(s, t) for s, t, *_ in edges(out, "RELATED_TO")] == [(1, 0), (2, 0), (3, 0)]


def test_elaborates_is_longer_and_holds_more_than_half_of_the_key_terms(store):
    old = "kayak river trip weekend"
    for new, expected in (("kayak river trip tents fire", True), ("kayak river tents campfire beach", False),
                          ("kayak river trip", False)):
        out = alike(store, (0, 0, old), (1, 1, new))
        assert edges(out, "ELABORATES") == ([(1, 0, "ELABORATES", 0.8)] if expected else []), new


@pytest.mark.parametrize(("gap", "expected"), [(0, 0.75), (30, 0.85), (60, 0.95), (400, 0.95)])
def test_a_contradiction_supersedes_the_more_surely_the_longer_ago(store, gap, expected):
    assert confidence(gap) == pytest.approx(expected)
    out = alike(store, (0, 0, "I like jazz."), (1, gap, "I don't like jazz anymore."))
    assert edges(out, "CONTRADICTS", "SUPERSEDES") == [
        (1, 0, "CONTRADICTS", 0.75), (1, 0, "SUPERSEDES", pytest.approx(expected))]


@pytest.mark.parametrize(("old", "new"), [
    ("I prefer tea with milk.", "I don't like tea with milk."), ("I hate running.", "Actually, I love running!"),
    ("Ann works at Acme.", "By the way, Ann left Acme last week."), ("I work for Acme.", "I was laid off from Acme."),
    ("I live in Lisbon.", "I moved from Lisbon to Ghent."),
    ("My sister lives in Cork.", "My sister moved out of Cork."),
    ("I live in Cork.", "I used to live in Cork."), ("My car is red.", "My car isn't red."),
    ("I'm not a vegetarian.", "I am a vegetarian now."), ("The office is blue.", "The office is no longer blue."),
])
def test_the_four_templates(store, old, new):
    assert edges(alike(store, (0, 0, old), (1, 1, new)), "SUPERSEDES")
    assert edges(alike(store, (0, 0, new), (1, 1, old)), "SUPERSEDES")  # the later one counts, either way


@pytest.mark.parametrize(("old", "new"), [
    ("I like jazz.", "I don't like rock."), ("I like jazz.", "My brother doesn't like jazz."),
    ("Ann works at Acme.", "Bob left Acme."), ("I live in Lisbon.", "My brother lives in Ghent."),
    ("I like jazz.", "Do you like jazz?"), ("I like jazz.", "Don't I like jazz?"),
    ("It is red.", "It is not red."), ("Mir gefällt Jazz.", "Mir gefällt Jazz nicht mehr."),
    ("I'm really sure.", "I'm not sure."), ("I'm running late.", "I'm not running late."),
    ("assistant: I like jazz.", "assistant: I don't like jazz."), ("I would like jazz.", "I don't like jazz."),
])
def test_no_contradiction(store, old, new):
    assert edges(alike(store, (0, 0, old), (1, 1, new)), "CONTRADICTS", "SUPERSEDES") == []


@pytest.mark.parametrize(("old", "new"), [
    ("I work at Microsoft", "I just started at Google"), ("I work at Microsoft", "I just switched jobs to Google"),
    ("I love Italian food", "I prefer Thai food now"),
    ("User works at Microsoft.", "The user just started working at Google."),
    ("I'm working for Microsoft.", "I got a new job at Google!"), ("I work at Microsoft.", "I joined Google."),
    ("I live in Lisbon.", "I live in Ghent."), ("I live in Lisbon.", "We just moved to Ghent."),
    ("My favorite food is Italian.", "My favourite food is Thai."), ("I prefer Italian food.", "I prefer Thai food."),
    ("My favorite cuisine is Italian.", "I've been really into Thai food lately."),
    ("I prefer Italian.", "I've switched to Thai."), ("Blue is my favorite color.", "My favorite color is green now."),
    ("I love Italian food", "Thai is my go-to"), ("I love Italian food!", "Honestly, Thai is my go-to now."),
    ("I love Italian.", "My go-to is Thai."), ("I enjoy Mexican food.", "These days Vietnamese is my favorite."),
    ("I love Italian food.", "Lately, I love Thai food."), ("I adore Italian food.", "I'm all about Thai food now."),
    ("I love Italian food.", "Thai has become my favourite."), ("I love Italian food.", "Thai's my number one choice."),
    ("My go-to cuisine is Italian.", "My go-to cuisine is definitely Thai now."),
    ("I love pizza.", "Sushi is my new favourite dish."), ("I love coffee.", "Tea is my go-to these days."),
    ("I love jazz.", "Techno is my favourite right now."), ("My favourite colour is blue.", "Green is my favourite."),
    ("I love eating Italian food.", "Thai is my go-to."), ("I love listening to jazz.", "Techno is my go-to now."),
    ("I love tennis.", "Padel is my go-to sport now."), ("I love the Python language.", "Rust is my go-to language."),
])
def test_another_value_of_a_slot_with_one_value_supersedes_as_in_the_papers_examples(store, old, new):
    out = alike(store, (0, 0, old), (1, 60, new))
    assert edges(out, "CONTRADICTS", "SUPERSEDES") == [(1, 0, "CONTRADICTS", 0.75), (1, 0, "SUPERSEDES", 0.95)]


@pytest.mark.parametrize(("old", "new"), [
    ("I work at Google.", "I work at Google as a manager."), ("I work at Microsoft.", "My sister works at Google."),
    ("I like Italian food.", "I like Thai food."), ("I prefer Italian food.", "I prefer jazz music."),
    ("My favorite food is Thai.", "My favorite color is green."), ("I prefer tea.", "I prefer trains."),
    ("I prefer Italian food.", "Do you prefer Thai food?"), ("I work at Microsoft.", "I started at six."),
    ("I love Italian food.", "Italian is my go-to."), ("I love Italian food.", "My sister's go-to is Thai."),
    ("I love Italian food.", "Thai is Ann's go-to."), ("I love Italian food.", "Blue is my favourite."),
    ("I love trying new foods.", "Thai is my go-to."), ("We like to grab food.", "Thai is my go-to."),
    ("I love French movies.", "Thai is my go-to."), ("I love rock climbing.", "Jazz is my go-to."),
    ("I love the black dress.", "Blue is my favourite color."), ("I love Italian food.", "Tea is my go-to these days."),
    ("I love Italian food.", "Is Thai my go-to?"), ("I love Italian food.", "Thai used to be my go-to."),
    ("I live in Lisbon.", "My old home is in Ghent."), ("I prefer Thai food.", "I love Italian food."),
])
def test_other_slots_other_people_and_the_same_value_supersede_nothing(store, old, new):
    assert edges(alike(store, (0, 0, old), (1, 60, new)), "CONTRADICTS", "SUPERSEDES") == []


def test_contradictions_and_elaborations_need_the_gate(store):
    job = (0, 0, "I work at Microsoft"), (1, 60, "I just started at Google")
    more = (0, 0, "kayak river trip weekend"), (1, 1, "kayak river trip tents fire")
    for cosine, passes in ((0.84, False), (0.86, True)):
        for rows, kind in ((job, "SUPERSEDES"), (job, "CONTRADICTS"), (more, "ELABORATES")):
            degrees = {rows[0][2]: 0, rows[1][2]: math.degrees(math.acos(cosine))}
            assert bool(edges(related(store, *rows, degrees=degrees), kind)) == passes
            assert edges(related(store, *rows, gate=0.0), kind)  # at right angles


def test_follows_is_the_previous_memory_of_the_session_though_another_lies_between_in_time(store):
    tables = told((0, 0, "one"), (1, 0, "two"), (0, 0, "three"))
    said = [datetime(2023, 5, 1, hour) for hour in (8, 9, 10)]
    memories = tables["memories"].with_columns(pl.Series("said_on", said, pl.Datetime("us")))
    tables = tables.updated({"memories": memories})
    assert edges(done(MemoryStack(embedder=Angles()), tables, store), "FOLLOWS") == [(2, 0, "FOLLOWS", 1.0)]


def test_speakers_keep_their_claims_apart(store):
    tables = told((0, 0, "Ann: I like jazz.\n\nBob: Me too."), (1, 3, "Bob: I don't like jazz."),
                  (2, 6, "Bob: Ann doesn't like jazz."))
    named = tables.updated({"turns": tables["turns"].with_columns(pl.Series("speaker", ["Ann", "Bob", "Bob"]))})
    out = done(MemoryStack(embedder=same_direction(tables)), named, store)
    assert [(s, t) for s, t, *_ in edges(out, "SUPERSEDES")] == [(2, 0)]


def test_what_one_turn_says_is_of_one_time(store):
    facts = told((0, 0, "I like jazz."), (0, 0, "I don't like jazz."), turns=[[4], [4]])
    assert edges(done(MemoryStack(embedder=same_direction(facts)), facts, store), "SUPERSEDES") == []


def test_what_an_extractor_heard_from_the_assistant_is_no_claim(store):
    tables = told((0, 0, "I like jazz."), (1, 1, "I don't like jazz."), source=["user", "assistant"])
    assert edges(done(MemoryStack(embedder=same_direction(tables)), tables, store), "CONTRADICTS", "SUPERSEDES") == []


def test_claims_by_hand():
    assert list(claims("We moved from Bergen to Cork", "Ann")) == [
        Claim("home", "ann", frozenset({"bergen"}), False), Claim("home", "ann", frozenset({"cork"}), True)]
    assert list(claims("She moved to Chicago. There is not much.")) == []


def test_nearest_in_blocks_is_nearest_in_one():
    vectors = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole, blocks = nearest(vectors, 5), nearest(vectors, 5, block=7)
    for one, other in zip(whole, blocks):
        np.testing.assert_allclose(one, other, atol=2e-6)
    cosine = vectors @ vectors.T
    for row in range(60):
        best = sorted(range(row), key=lambda e: -cosine[row, e])[:5]
        assert sorted(whole[1][whole[0] == row]) == sorted(best)
