from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from memlab.evaluate.compare import ArmResult, Comparison, compare
from memlab.evaluate.contrast import UNKNOWN, Contrast
from memlab.experiment.config.instantiate import CONF
from memlab.experiment.harness.sweep import read
from memlab.report.opening import opening
from tests.evaluate.test_verdict import share

METRIC = "within_1000/turn/recall_all"


def arm(values: Sequence[float], tokens: float = 100.0, metric: str = METRIC, *, groups: Sequence[int] | None = None,
        category: str | None = "x", **more: bool) -> ArmResult:
    n = len(values)
    return ArmResult(pl.DataFrame({
        "question": range(n), "corpus": [0] * n, "group": list(groups or range(n)), "category": [category] * n,
        "label_error": [None] * n, "scored": [True] * n, metric: np.asarray(values, float),
        "context/tokens": [tokens] * n}, schema_overrides={"label_error": pl.String, "category": pl.String}), **more)


def of(arms: dict[str, ArmResult], contrasts: Sequence[Contrast] = ()) -> Comparison:
    return compare("systems", "mine", arms, contrasts)


def rules(*rows: tuple[str, str, float, str], metric: str = f"curve/{METRIC}") -> Comparison:
    """A comparison whose declared contrasts are these (arm, comparator, difference, verdict)."""
    comparison = of({name: arm(share(.8)) for name in ("marginal", "gap", "budget", "gap.twin")})
    comparison["contrasts"] = [
        {**UNKNOWN, "arm": one, "comparator": other, "metric": metric, "direction": "greater", "n": 90, "groups": 90,
         "df": 89., "difference": d, "low": d - .01, "high": d + .01, "p": .002, "p_adjusted": .012, "verdict": verdict,
         "words": "", "planned": .03} for one, other, d, verdict in rows]
    comparison["verdict"] = None
    return comparison


COMPARISONS = {
    "a winner": of({"best": arm(share(.896)), "plain": arm(share(.7)), "random": arm(share(.1))}),
    "level with some": of({"a": arm(share(.8), 900), "b": arm(share(.795), 800), "c": arm(share(.5))}),
    "level with most": of({"random": arm(share(.1)), **{name: arm(share(.8), 900 + i) for i, name in
                                                        enumerate("abcdefghij")}}),
    "no winner": of({"a": arm(share(.8, 10)), "b": arm(share(.7, 10)), "c": arm(share(.8, 10), 50.)}),
    "all the same": of({"a": arm([1., 0., 1.]), "b": arm([1., 0., 1.])}),
    "one group": of({"a": arm(share(.8), groups=[7] * 200), "b": arm(share(.1), groups=[7] * 200)}),
    "one arm": of({"best": arm(share(.8), category=None)}),
    "answers": of({"a": arm(share(.8), metric="answer/f1"), "b": arm(share(.4), metric="answer/f1")}),
    "no metric": of({"a": arm(share(.8), metric="other"), "b": arm(share(.4), metric="another")}),
    "gold alone": of({"oracle": arm(share(1.), oracle=True)}),
    "a rule": rules(("marginal", "constant", .035, "shown"), ("marginal", "budget", .031, "shown")),
    "no rule": rules(("gap", "constant", .002, "open"), ("marginal", "constant", -.02, "open")),
    "words": rules(("marginal", "constant", .083, "shown"), metric="curve/shown/answer_words"),
    "everything fits": {**of({"a": arm(share(1.)), "b": arm(share(.9))}), "whole": {
        "size": 536., "unit": "tokens", "limit": 1000, "setting": "rank.select.tokens", "advised": 130}},
}


@pytest.mark.parametrize(("name", "sentence", "winner", "comparator"), [
    ("a winner", "Use best: at equal tokens it finds all evidence turns for 89.5 % of the questions, 19.5 points above "
     "plain.", "best",
     "plain"),
    ("level with some", "Use a: at equal tokens it is shown to be better than c; a and b are level.", "a", "b"),
    ("level with most", "Use a: at equal tokens it is shown to be better than random; a, b and eight others "
     "are level.", "a", "b"),
    ("no winner", "No winner on 10 questions: a and c are level; b is open.", None, None),
    ("all the same", "No winner on 3 questions: a and b are level, with the same value.", None, None),
    ("one arm", "best finds all evidence turns for 80.0 % of the questions within 1,000 tokens.", None, None),
    ("answers", "Use a: it scores 80.0 % by the judge f1, 40.0 points above b.", "a", "b"),
    ("gold alone", "Only arms that look at gold are here, so no system can be recommended.", None, None),
    ("a rule", "Use marginal: at equal tokens it finds all evidence 3.1 points more often than budget.", "marginal",
     "budget"),
    ("no rule", "No rule is shown to beat what it is compared with at equal tokens; the nearest is gap, 0.2 points "
     "above constant K.", None, None),
    ("words", "Use marginal: at equal tokens it shows 8.3 points more of the answers' words than constant K.",
     "marginal", None),
    ("everything fits", "Everything fits: a memory (536 tokens) is shown whole within 1,000, so nothing was chosen and "
     "no winner can be named.", None, None),
])
def test_the_sentence(name: str, sentence: str, winner: str | None, comparator: str | None) -> None:
    found = opening(COMPARISONS[name])
    assert (found.sentence, found.winner, found.comparator) == (sentence, winner, comparator)


def test_a_tie_names_its_groups_and_how_many_questions_would_show_the_difference_that_was_seen() -> None:
    words = " ".join(opening(COMPARISONS["no winner"]).sure)
    assert ("To copy: a; it finds all evidence turns for 80.0 % of the questions. Level (the same value, or within 2 "
            "points): c (the same value). Open, since no difference is shown: b (+10.0 points") in words
    assert re.search(r"What would settle it: about [\d,]+ more questions, if the true difference to b is the 10.0 "
                     "points seen here", words)
    level = {"oltramem": arm(share(.946, 37)), "best": arm(share(.946, 37), 113.), "plain": arm(share(.865, 37))}
    found = opening(of(level))
    assert found.sentence == "No winner on 37 questions: best and oltramem are level; plain is open."
    assert found.sure[0].startswith("To copy: best;")  # neither the cheaper nor the first by name, but the default
    assert re.search("if the true difference to plain is the 8.1 points seen here", " ".join(found.sure))
    two = of({"a": arm(share(.8, 50)), "b": arm(share(.74, 50))})
    assert opening(two).sentence == "No winner on 50 questions: a leads; b is open."
    assert "which gives no measure of chance" in " ".join(opening(COMPARISONS["one group"]).sure)


def test_level_is_said_of_the_same_value_or_an_interval_within_two_points_alone() -> None:
    tied = {"a": arm(share(.8, 2_000)), "b": arm(share(.7995, 2_000)), "c": arm(share(.5, 2_000))}
    assert opening(of(tied)).sentence == "Use a: at equal tokens it is shown to be better than c; a and b are level."
    far = {"a": arm(share(.9, 50)), "b": arm([float(n >= 8) for n in range(50)]), "c": arm(share(.1, 50))}
    found = opening(of(far))
    assert found.sentence == "Use a: at equal tokens it is shown to be better than c; b is open."
    assert "Open, since no difference is shown: b (+6.0 points" in " ".join(found.sure)
    assert "level" not in " ".join([found.sentence, *found.sure]).casefold()
    both = {**far, "d": far["a"]}
    assert opening(of(both)).sentence == (
        "Use a: at equal tokens it is shown to be better than c; a and d are level; b is open.")


def test_the_cut_and_the_leaders_of_other_budgets_are_told() -> None:
    def at(short: float, usual: float, long: float) -> ArmResult:
        columns = {300: short, 3000: long}
        return ArmResult(arm(share(usual)).questions.with_columns(
            pl.Series(f"within_{tokens}/turn/recall_all", share(value)) for tokens, value in columns.items()))

    found = opening(of({"best": at(.7, .8, .9), "sessions": at(.1, .4, .9), "plain": at(.5, .7, .9)}))
    assert found.sentence.startswith("Use best: at equal tokens it finds")
    words = " ".join(found.sure)
    assert "each ranking is cut at 1,000 tokens for every question; the first unit that does not fit ends it" in words
    assert "Within 300 tokens: best 70.0 %, 20.0 points above plain." in words
    assert "Within 3,000 tokens: best 90.0 %; best, plain and one other are level." in words


def test_arms_that_show_more_or_less_of_one_ranking_have_no_winner() -> None:
    ranking = pl.DataFrame({"question": [0], "rank": [1], "unit": [1], "selected": [True]})
    arms = {f"k={k}": ArmResult(arm(share(.8), 20. * k).questions, ranking) for k in (5, 50)}
    found = opening(of(arms))
    assert found.winner is None
    assert found.sentence == ("No winner on 200 questions: the arms show more or less of one ranking, so at equal "
                              "tokens they are the same.")




def test_the_metric_and_the_question_are_those_of_the_verdict() -> None:
    assert opening(COMPARISONS["no rule"]).metric == opening(COMPARISONS["a winner"]).metric == METRIC
    assert opening(COMPARISONS["answers"]).metric == "answer/f1"
    assert opening(COMPARISONS["no metric"]).metric is None
    assert opening({**COMPARISONS["a rule"], "experiment": "adaptive_k"}).question == (
        "Does choosing K by question beat one K for all, at the same mean context tokens?")
    assert opening({**COMPARISONS["a rule"], "experiment": "../../etc"}).question == ""
    read(["plugins=[sentence_pruning]"])
    assert opening({**COMPARISONS["a rule"], "experiment": "sentence_pruning"}).question == (
        "Is it better to show parts of many turns than few turns whole?")


def test_the_card_says_what_the_winner_is_and_that_embedded_data_is_a_demonstration() -> None:
    found = opening({**COMPARISONS["a rule"], "notes": ["Lives are a demonstration, not evidence.", "Another note."]})
    assert [line for line in found.sure if line.startswith(f"{found.winner}: ")]
    assert found.sure[-1] == "Lives are a demonstration, not evidence."


def test_the_question_of_an_experiment_is_not_its_command() -> None:
    for path in (CONF / "exp").glob("*.yaml"):
        question = opening({**COMPARISONS["a rule"], "experiment": path.stem}).question
        assert question
        assert "memlab run" not in question


def test_a_declared_contrast_that_is_shown_is_named_where_the_verdict_leaves_it_open() -> None:
    better = {"best": arm(share(.9, 40)), "plain": arm(share(.72, 40)),
              "random": arm(share(.1, 40)), **{f"x{n}": arm(share(.875, 40)) for n in range(9)}}
    said = opening(of(better, [Contrast("best", "plain", METRIC)]))
    assert said.sentence.endswith("x0 and nine others are open.")
    assert [line for line in said.sure if line.startswith(
        "Yet shown by a contrast that was declared before the run: best +17.5 points against plain in all evidence")]
    opposite = opening(of(better, [Contrast("plain", "best", METRIC)]))
    assert [line for line in opposite.sure if "plain −17.5 points against best" in line]
    assert not [line for line in opening(of(better)).sure if line.startswith("Yet ")]


def test_the_first_sentence_says_that_the_winner_is_fitted_on_labels() -> None:
    of_rules, of_arms = COMPARISONS["a rule"], COMPARISONS["a winner"]
    for comparison, winner in ((of_rules, "marginal"), (of_arms, "best")):
        arms = {name: {**one, "fitted": name == winner} for name, one in comparison["arms"].items()}
        assert opening({**comparison, "arms": arms}).sentence.startswith(f"Use {winner} (fitted on labels): ")
        assert "fitted" not in opening(comparison).sentence
    seen = rules(("marginal", "constant", .035, "shown"), ("gap", "constant", .02, "shown"))
    seen["arms"]["marginal"]["tainted"] = True  # an arm that has learned these questions is no candidate
    assert opening(seen).winner == "gap"
