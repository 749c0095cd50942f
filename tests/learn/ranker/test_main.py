from __future__ import annotations

from pathlib import Path

import pytest

from memlab import run
from memlab.learn.ranker.__main__ import main
from memlab.learn.ranker.model import load
from tests.small import words

SMALL = ("rank/score=learned", "rank.score.recipe.trees=4", "rank.score.recipe.smallest_leaf=5", "rank.score.depth=20")


@pytest.mark.slow
def test_a_fit_on_two_data_sets_is_saved_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted, file = [w for w in words(tmp_path, *SMALL) if not w.startswith("out=")], tmp_path / "fit.json"
    assert main([*fitted, "data=synthetic", "data.seed=3", f"out={file}"]) == 0
    assert load(file).data == ("synthetic", "synthetic")
    assert load(file).questions > 16 - 4
    assert "z linear" in capsys.readouterr().out
    assert run.main(words(tmp_path, "rank/score=learned", f"rank.score.model={file}")) == 0


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["data=synthetic"]) == 2
    assert "out: Field required; write out=VALUE" in capsys.readouterr().err
    assert main(["rank/score=zscore", f"out={tmp_path}/x"]) == 1
    assert "holds no learned fusion" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
