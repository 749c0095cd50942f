from __future__ import annotations

from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.commands.explain import explain, overview
from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.comments import reasons
from memlab.experiment.config.instantiate import CONF, options
from memlab.experiment.config.overrides import groups
from memlab.stages.rank.select import Gap

SLOTS = sorted(slot for slot in groups() if not slot.startswith("arm/"))


def test_the_overview_lists_slots_and_settings_of_a_run() -> None:
    page = overview()
    assert "\n  rank/select        fixed      how many results are shown\n" in page
    assert "\n  plan         false  true: print what would run" in page
    assert {*SLOTS} <= {line.split()[0] for line in page.splitlines() if line.strip()}


def test_a_slot_has_one_line_for_each_technique_and_each_can_be_explained() -> None:
    for slot in SLOTS:
        page = explain(slot)
        assert "`" not in page
        for name in options(slot):
            (line,) = [line for line in page.splitlines() if line.startswith("  ") and line.split()[0] == name]
            assert len(line.split()) > 1, name
    for name in own_choices(CONF):
        if "/" in name:
            assert explain(name).splitlines()[0].endswith(f"={name.rpartition('/')[2]}")


@pytest.mark.parametrize("name", ["rank/select/gap", "rank.select.gap", "rank/select=gap", "rank.select/gap"])
def test_a_technique_has_its_settings_with_default_type_and_reason(name: str) -> None:
    page = explain(name)
    assert f"rank.select.buffer=5  (int >= 0)\n    {reasons(Gap)['buffer']}" in page
    assert "Adaptive-k (Taguchi et al., EMNLP 2025)" in page


@pytest.mark.parametrize(("name", "text"), [
    ("search.dense.ivfpq", "search.dense.index.nprobe=32  (int >= 1)\n    lists searched per query"),
    ("rank/boost/recency_linear", "rank.boost.signals.0.form=linear  (exp | linear)\n    exp: exp(-age / days)"),
    ("embedder/minilm_192", "It sets:\n\n  max_length: 256                     # the model's own limit"),
    ("rank.select.k", "rank.select.k=10"), ("seed", "  seed  0  recorded in the manifest"), ("learn", "learn.folds"),
    ("rank/rerank/none", "Nothing is done here.")])
def test_a_page_says_what_a_technique_or_a_setting_is(name: str, text: str) -> None:
    assert text in explain(name)


@pytest.mark.parametrize(("name", "fix"), [
    ("rank/selct", "did you mean 'rank/select'?"), ("rank.selct", "did you mean 'rank/select'?"),
    ("rank/select/gpa", "did you mean 'gap'?"), ("gap", "memlab explain rank/select/gap")])
def test_an_unknown_name_is_answered_with_the_nearest(name: str, fix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 2
    assert fix in capsys.readouterr().err


def test_techniques_of_a_folder_are_explained_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "techniques.yaml").write_text(
        "rank/select:\n  # Seven of them. Always.\n  seven:\n    _target_: memlab.stages.rank.select.Fixed\n    k: 7\n")
    assert main(["explain", "rank/select", "rank/select/seven", f"conf_dir={tmp_path}"]) == 0
    page = capsys.readouterr().out
    assert "  Seven of them.\n" in page
    assert "rank.select.k=7" in page
    assert main(["explain", "rank/select/seven"]) == 2
