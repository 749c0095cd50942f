from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab import run
from memlab.errors import MemlabError
from memlab.learn.ranker.__main__ import main, split
from memlab.learn.ranker.explain import describe_importances, explain
from memlab.learn.ranker.model import fit, load
from memlab.learn.ranker.stage import candidates
from memlab.tables import with_text
from tests.learn.ranker.worlds import RECIPE, first
from tests.small import lives, words

SMALL = ("rank/score=learned", "rank.score.recipe.trees=4", "rank.score.recipe.smallest_leaf=5", "rank.score.depth=20")


def test_words_belong_to_the_data_set_before_them() -> None:
    assert split(["a=1", "data.lives=2"]) == [["a=1", "data.lives=2"]]
    assert split(["a=1"]) == [["a=1"]]


@pytest.mark.slow
def test_a_fit_on_two_data_sets_is_saved_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted, file = [w for w in words(tmp_path, *SMALL) if not w.startswith("out=")], tmp_path / "fit.json"
    assert main([*fitted, "data=synthetic", "data.seed=3", f"out={file}"]) == 0
    assert load(file).data == ("synthetic", "synthetic")
    assert load(file).questions > 16 - 4
    assert "z linear" in capsys.readouterr().out
    assert run.main(words(tmp_path, "rank/score=learned", f"rank.score.model={file}")) == 0
    tables = lives().load()
    texts = with_text(tables["questions"], tables["texts"])["text"]
    question = texts.filter(texts.is_unique())[0]
    capsys.readouterr()
    assert main(["explain", f"question={question}", f"model={file}", *fitted]) == 0
    assert question in capsys.readouterr().out


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["data=synthetic"]) == 1
    assert "out=FIT.json" in capsys.readouterr().err
    assert main(["explain", "data=synthetic"]) == 1
    assert "question=" in capsys.readouterr().err
    assert main(["rank/score=zscore", f"out={tmp_path}/x"]) == 1
    assert "holds no learned fusion" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_what_adds_most_to_a_lead_is_shown_first_for_one_question() -> None:
    model = fit(*candidates(first(), 40), 40, RECIPE)
    question = with_text(first()["questions"], first()["texts"]).join(
        first()["ranking"], on="question", how="semi")["text"]
    unique = question.filter(question.is_unique())
    shown = explain(model, first(), unique[0], most=3, turns=2).split("\n\n")
    assert len(shown) == 3
    for block in shown[1:]:
        values = [abs(float(line.split()[0])) for line in block.splitlines()[2:]]
        assert 1 <= len(values) <= 3
        assert 0 not in values
        assert values == sorted(values, reverse=True)
    assert shown[1].startswith("1. score")


def test_a_text_of_no_question_is_refused() -> None:
    model = fit(*candidates(first(), 40), 40, RECIPE)
    with pytest.raises(MemlabError, match="0 questions have this text"):
        explain(model, first(), "no such words")


def test_shares_of_the_gain_sum_to_one() -> None:
    model = fit(*candidates(first(), 40), 40, RECIPE)
    shares = [float(line.split("%")[0]) for line in describe_importances(model, most=1000).splitlines()]
    assert sum(shares) == pytest.approx(100, abs=len(shares) * .06)
    assert shares == sorted(shares, reverse=True)
    assert pl.Series(shares).min() > 0 or len(shares) > 20
