"""The curve of a pack that prunes units: each point is the context of its setting."""

from __future__ import annotations

import polars as pl
import pytest
from sentence_pruning.curve import ANSWER_WORDS, LARGEST_PRUNED_K, answer_words, share, wanted_words
from sentence_pruning.pruning import PrunedByRank

from memlab.data.synthetic.dataset import Synthetic
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.curves import CONSTANT, RULE, curve_metric, mean_points, with_heights
from memlab.pipeline.pipeline import apply
from memlab.pipeline.tables import Tables, with_text
from memlab.stages.rank.select import Budget, Fixed
from memlab.store import Store
from tests.small import lexical

pytestmark = pytest.mark.nightly

HALF = PrunedByRank(share=.5)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def tables(store: Store) -> Tables:
    return lexical(select=Fixed(k=7), pack=HALF).run(Synthetic(lives=4, questions=13).load(), store)


def measured(tables: Tables) -> dict[int, tuple[float, float]]:
    """Tokens and the share of the answer's words, counted in the context itself."""
    wanted = wanted_words(tables)
    texts = with_text(tables["context"], tables["texts"])
    context = texts.join(wanted, on="question", how="semi").with_row_index("row")
    held = answer_words(context.select("row", "question", "text"), wanted)
    shares = share(held, pl.Series([True] * context.height).to_numpy())
    tokens = dict(context.group_by("question").agg(pl.col("tokens").sum()).iter_rows())
    return {q: (tokens.get(q, 0), float(share)) for q, share in zip(wanted["question"].unique().sort(), shares)}


def at(curve: pl.DataFrame, rule: str, point: int) -> dict[int, tuple[float, float]]:
    rows = curve.filter(pl.col("rule") == rule, pl.col("point") == point)
    return {q: (tokens, share) for q, tokens, share in rows.select("question", "tokens", ANSWER_WORDS).iter_rows()}


def test_a_point_is_the_context_of_its_k_pruned_or_whole(tables: Tables, store: Store) -> None:
    curve = HALF.curve(Fixed(k=7), tables, store)
    assert at(curve, RULE, 6) == measured(tables)
    whole = tables.updated(apply(HALF.whole(), tables, store))
    assert at(curve, CONSTANT, 6) == measured(whole)
    assert measured(whole) != measured(tables)
    assert curve.filter(pl.col("rule") == RULE)["point"].max() == LARGEST_PRUNED_K - 1


def test_a_point_of_a_rule_is_the_context_of_its_setting(tables: Tables, store: Store) -> None:
    curve = HALF.curve(Budget(tokens=300), tables, store)
    rule = list(Budget(tokens=300).variations())[20]
    selected = tables.updated(apply(rule, tables, store))
    assert at(curve, RULE, 20) == measured(selected.updated(apply(HALF, selected, store)))


def test_pruned_and_whole_curves_are_compared_at_equal_tokens(tables: Tables, store: Store) -> None:
    curve = HALF.curve(Fixed(k=7), tables, store)
    assert curve_metric(curve) == f"curve/{ANSWER_WORDS}"
    assert list(mean_points(curve)) == [ANSWER_WORDS]
    questions = tables["questions"].select("question", pl.col("corpus").alias("group"))
    one, two, (low, high) = with_heights(Contrast("half", CONSTANT, f"curve/{ANSWER_WORDS}"), questions, curve, None)
    assert low < high
    assert one.height == two.height == wanted_words(tables)["question"].n_unique()
    for unknown in ("constant_by_class", "other"):
        other = None if unknown == "constant_by_class" else curve.drop(ANSWER_WORDS)
        assert with_heights(Contrast("half", unknown, f"curve/{ANSWER_WORDS}"), questions, curve, other) is None


def test_without_answers_that_are_said_there_is_no_curve(tables: Tables, store: Store) -> None:
    silent = tables.updated({"gold": tables["gold"].with_columns(pl.lit("zzz").alias("answer"))})
    assert HALF.curve(Fixed(k=7), silent, store) is None
