from __future__ import annotations

import polars as pl
import pytest

from memlab.learn.pairs import draw, draw_examples, examples, question_keys, split
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame
from memlab.stages.rank.units import turn_units
from memlab.support.errors import MemlabError
from tests.learn.small_models import lives, ranked

ROLES = ("user", "assistant")
NOTE = "Nothing of interest happened."


def shared_world(sessions: tuple[tuple[str, ...], ...] = (("gold 0", "x 0"), (NOTE, "common"), ("own 0", "y 0")),
                 corpora: int = 4) -> Tables:
    """A question a corpus. Session 0 holds its evidence, turn 0; session 1 is the same in every corpus."""
    said = [(c, s, t, text.replace("0", str(c)) if s != 1 else text)
            for c in range(corpora) for s, turns in enumerate(sessions) for t, text in enumerate(turns)]
    asked = [f"What about {c}?" for c in range(corpora)]
    turns = frame("turns", {
        "corpus": [r[0] for r in said], "session": [r[1] for r in said], "turn": [r[2] for r in said],
        "role": ["user"] * len(said), "text_id": [text_hash(r[3]) for r in said]})
    units = turn_units(turns)
    order = units.join(pl.DataFrame({"corpus": range(corpora)}, schema={"corpus": pl.Int32}), on="corpus").select(
        pl.col("corpus").alias("question"), "unit", pl.lit(0.0).alias("score"),
        pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("corpus").alias("rank"), pl.lit(False).alias("selected"))
    return Tables(
        texts=texts_frame([*asked, *(r[3] for r in said)]), turns=turns, units=units, ranking=order,
        memories=frame("memories", {}),
        questions=frame("questions", {"question": range(corpora), "corpus": range(corpora),
                                      "text_id": [text_hash(a) for a in asked]}),
        evidence=frame("evidence", {"question": range(corpora), "session": [0] * corpora, "turn": [0] * corpora}),
        gold=frame("gold", {"question": range(corpora), "answer": ["a"] * corpora, "category": ["c"] * corpora,
                            "abstain": [False] * corpora, "scored": [True] * corpora}))


def taught(tables: Tables, fold: str = "all", depth: int = 100) -> pl.DataFrame:
    return examples(tables, split(tables, fold), depth, ROLES)


def test_positives_are_evidence_and_negatives_what_the_lanes_ranked_instead() -> None:
    tables = ranked()
    made = taught(tables, depth=5)
    lookup = dict(tables["texts"].iter_rows())
    places = {r[:4] for r in tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question")
              .select("question", "corpus", "session", "turn").iter_rows()}
    said = {(c, s, t): lookup[h] for c, s, t, h in
            tables["turns"].select("corpus", "session", "turn", "text_id").iter_rows()}
    gold = {(q, said[c, s, t]) for q, c, s, t in places}
    assert set(made.select("question", "positive").iter_rows()) == gold
    place = {u: (c, s, t[0]) for u, c, s, t in
             tables["units"].select("unit", "corpus", "session", "turns").iter_rows()}
    for question, query, _, negatives in made.iter_rows():
        head = tables["ranking"].filter((pl.col("question") == question) & (pl.col("rank") <= 5)).sort("rank")
        texts = [said[place[u]] for u in head["unit"]]
        mine = {text for q, text in gold if q == question}
        assert negatives == list(dict.fromkeys(t for t in texts if t not in mine))
        assert text_hash(query) == tables["questions"].filter(pl.col("question") == question)["text_id"].item()
    unanswerable = tables["gold"].filter(~pl.col("scored"))["question"]
    assert len(unanswerable)
    assert not set(unanswerable) & set(made["question"])


def test_folds_are_disjoint_cover_all_and_share_no_evidence() -> None:
    tables = shared_world(corpora=7)
    parts = [split(tables, f"{k}/3") for k in (1, 2, 3)]
    held = [set(p.held_out["key"]) for p in parts]
    assert sum(map(len, held)) == len(set().union(*held)) == 7
    for p in parts:
        assert not set(p.held_out["key"]) & set(p.train["key"])
        assert p.held_out.height + p.train.height == 7
        assert not set(examples(tables, p, 100, ROLES)["question"]) & set(p.held_out["question"])
    whole = split(tables, "all")
    assert (whole.train.height, whole.held_out.height, whole.forbidden.height) == (7, 0, 0)


def test_what_the_held_out_fold_will_be_tested_on_is_no_ones_negative() -> None:
    tables = shared_world()
    without = taught(tables, "1/2")
    assert without.height == 2
    for question, _, positive, negatives in without.iter_rows():
        assert positive == f"gold {question}"
        assert negatives == [f"x {question}", f"own {question}", f"y {question}"]
    assert [t for t in taught(tables)["negatives"][0] if t in (NOTE, "common")] == [NOTE, "common"]


def test_no_label_of_the_held_out_fold_changes_what_is_taught() -> None:
    tables = shared_world()
    fold = split(tables, "1/2")
    apart = pl.col("question").is_in(fold.held_out["question"].implode())
    moved = tables["evidence"].with_columns(pl.when(apart).then(2).otherwise("session").cast(pl.Int32).alias("session"))
    other = tables.updated({"evidence": moved})
    assert examples(other, fold, 100, ROLES).equals(examples(tables, fold, 100, ROLES))
    mine = tables.updated({"evidence": tables["evidence"].with_columns(session=pl.lit(2, pl.Int32))})
    assert not examples(mine, fold, 100, ROLES).equals(examples(tables, fold, 100, ROLES))


def test_a_session_that_is_evidence_as_a_whole_gives_neither_positive_nor_negative() -> None:
    tables = shared_world()
    vague = frame("evidence", {"question": [0, 0, 1], "session": [0, 2, 0], "turn": [0, None, None]})
    made = taught(tables.updated({"evidence": vague}))
    assert made["question"].to_list() == [0]
    assert made["negatives"][0].to_list() == ["x 0", NOTE, "common"]


def test_a_turn_that_reads_like_the_evidence_and_a_question_without_a_negative_are_left_out() -> None:
    twice = taught(shared_world((("gold 0", "gold 0"), (NOTE, "common"), ("gold 0", "y 0"))))
    assert twice["negatives"][0].to_list() == [NOTE, "common", "y 0"]
    assert taught(shared_world((("gold 0", "gold 0"), ("gold 0",)), corpora=1), depth=2).is_empty()


def scored_world() -> Tables:
    """One question with the evidence turns 0 and 1, and first-stage scores for all turns but the last."""
    tables = shared_world((("gold 0", "more gold"), ("common", "near"), ("far", "common"), ("unranked",)), corpora=1)
    score = {"gold 0": 2.0, "near": 1.9, "common": 1.5, "far": .4, "more gold": -1.0}
    said = tables["units"].explode("turns").select("unit", "session", pl.col("turns").alias("turn")).join(
        tables["turns"], on=["session", "turn"]).join(tables["texts"], on="text_id")
    ranking = tables["ranking"].drop("score").join(said.select("unit", pl.col("text").replace_strict(
        score, default=None, return_dtype=pl.Float64).alias("score")), on="unit").drop_nulls("score").sort(
        "score", descending=True).with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int32))
    evidence = frame("evidence", {"question": [0] * 3, "session": [0, 0, 3], "turn": [0, 1, 0]})
    return tables.updated({"ranking": ranking, "evidence": evidence})


@pytest.mark.parametrize(("margins", "negatives"), [
    ({}, {"gold 0": ["near", "common", "far"], "more gold": ["near", "common", "far"],
          "unranked": ["near", "common", "far"]}),
    ({"absolute_margin": 0.0}, {"gold 0": ["near", "common", "far"]}),  # no turn is below -1
    ({"absolute_margin": .5}, {"gold 0": ["common", "far"]}),  # 2 - .5 = 1.5: the turn at 1.5 is just far enough
    ({"absolute_margin": .6}, {"gold 0": ["far"]}), ({"absolute_margin": 2.0}, {}),
    ({"relative_margin": .05}, {"gold 0": ["near", "common", "far"]}),  # 2 - 2 x .05 = 1.9
    ({"relative_margin": .06}, {"gold 0": ["common", "far"]}),
    ({"relative_margin": .05, "absolute_margin": 1.0}, {"gold 0": ["far"]})])
def test_a_negative_scores_below_the_positive_by_the_margins(
        margins: dict[str, float], negatives: dict[str, list[str]]) -> None:
    tables = scored_world()
    made = examples(tables, split(tables, "all"), 100, ROLES, **margins)
    assert dict(made.select("positive", "negatives").iter_rows()) == negatives


def test_a_key_names_wording_and_corpus_and_nothing_else() -> None:
    tables = lives()
    keys = question_keys(tables["questions"], tables["turns"])
    same = tables["questions"].join(keys.select("question", "key"), on="question")
    pairs = same.select("corpus", "text_id").unique().height
    assert same["text_id"].n_unique() < pairs == same["key"].n_unique()  # lives are asked the same things
    renumbered = tables["questions"].with_columns(pl.col("question") + 100, pl.col("corpus") + 5)
    shuffled = tables["turns"].with_columns(pl.col("corpus") + 5).sample(fraction=1, shuffle=True, seed=1)
    assert question_keys(renumbered, shuffled)["key"].to_list() == keys["key"].to_list()


def test_more_folds_than_groups_and_sessions_as_units_are_refused() -> None:
    with pytest.raises(MemlabError, match="4 disjoint folds at most"):
        split(shared_world(), "1/5")
    tables = shared_world()
    whole = tables["units"].with_columns(level=pl.lit("session"))
    with pytest.raises(MemlabError, match="is trained on turns"):
        taught(tables.updated({"units": whole}))


def toy() -> pl.DataFrame:
    """Eight questions; the positive of one is a negative of the others."""
    words = ["piano", "garden", "soup", "train", "violin", "castle", "desk", "tiger"]
    return pl.DataFrame({
        "question": range(8), "query": [f"where is my {w}" for w in words],
        "positive": [f"I have a {w}" for w in words],
        "negatives": [[f"I have a {o}" for o in words if o != w] for w in words]})


def test_every_epoch_holds_every_example_once_with_negatives_of_its_own() -> None:
    made, rows = draw(toy(), 3, 2, 3, seed=0), {row["query"]: row for row in toy().rows(named=True)}
    assert len(made.queries) == 16
    assert sorted(made.queries) == sorted([*rows, *rows])
    for query, (positive, *negatives) in zip(made.queries, made.passages):
        assert positive == rows[query]["positive"]
        assert len(set(negatives)) == 3
        assert set(negatives) <= set(rows[query]["negatives"])
    drawn = {query: [frozenset(row) for name, row in zip(made.queries, made.passages) if name == query]
             for query in rows}
    assert any(one != other for one, other in drawn.values())  # drawn anew in each epoch
    assert draw(toy(), 3, 2, 3, seed=0) == made != draw(toy(), 3, 2, 3, seed=1)
    few = draw(toy().with_columns(pl.col("negatives").list.head(1)), 4, 1, 3, seed=0)
    assert {len(row) for row in few.passages} == {2}


def test_a_limit_is_drawn_by_seed_and_keeps_the_order() -> None:
    assert draw_examples(toy(), None, 0).equals(toy())
    assert draw_examples(toy(), 8, 0).equals(toy())
    kept = draw_examples(toy(), 5, 0)["question"].to_list()
    assert kept == sorted(kept)
    assert len(kept) == 5
    assert kept == draw_examples(toy(), 5, 0)["question"].to_list() != draw_examples(toy(), 5, 1)["question"].to_list()
