"""Pipelines and arms made in Python, as README and docs/python.md show them."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import pytest

from memlab import Store, compare, load, run_pipeline
from memlab.data.synthetic.dataset import Synthetic
from memlab.experiment.harness.sweep import preset
from memlab.stages.rank.select import Fixed, Gap
from memlab.support.errors import Faults
from tests.small import lexical

ROOT = Path(__file__).resolve().parents[3]
DATA = Synthetic(lives=3, questions=6)


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_pipelines_become_arms_of_one_experiment(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    made = {name: run_pipeline(lexical(select=select), DATA, name, out=tmp_path, store=store)
            for name, select in {"five": Fixed(k=5), "gap": Gap()}.items()}
    assert {folder.parent for folder in made.values()} == {tmp_path / "python" / "synthetic"}
    assert [*load(made["five"].parent)] == ["five", "gap", "gap.twin"]
    assert {*compare(*made.values()).table()["arm"]} == {"five", "gap"}


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_blocks_of_a_page_run_one_after_the_other(
        page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    assert "fixed_10" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["seed", "rank.select.k", "plan", "rank.select._target_"])
def test_a_value_of_the_environment_is_in_no_error(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_VALUE", "hunter-two")
    with pytest.raises(Faults) as caught:
        preset(f"{word}=${{oc.env:MY_VALUE}}")
    assert "***" in str(caught.value)
    assert "hunter-two" not in "".join(traceback.format_exception(caught.value))
