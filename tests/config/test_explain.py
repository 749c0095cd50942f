from __future__ import annotations

from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.config.choices import own_choices
from memlab.config.comments import reasons
from memlab.config.explain import explain, overview
from memlab.config.instantiate import CONF, options
from memlab.config.overrides import groups
from memlab.errors import MemlabError
from memlab.rank.select import Gap


def test_the_overview_lists_slots_and_settings_of_a_run() -> None:
    page = overview()
    assert "\n  rank/select        fixed      how many results are shown\n" in page
    assert "\n  plan         false  true: print what would run" in page
    assert {slot for slot in groups() if not slot.startswith("arm/")} <= {line.split()[0] for line in page.splitlines()
                                                                         if line.strip()}


@pytest.mark.parametrize("slot", sorted(slot for slot in groups() if not slot.startswith("arm/")))
def test_a_slot_has_one_line_for_each_technique(slot: str) -> None:
    lines = explain(slot).splitlines()
    for name in options(slot):
        (line,) = [line for line in lines if line.startswith("  ") and line.split()[0] == name]
        assert len(line.split()) > 1, name
    assert "`" not in explain(slot)


@pytest.mark.parametrize("name", ["rank/select/gap", "rank.select.gap", "rank/select=gap", "rank.select/gap"])
def test_a_technique_has_its_settings_with_default_type_and_reason(name: str) -> None:
    page = explain(name)
    assert f"rank.select.buffer=5  (int >= 0)\n    {reasons(Gap)['buffer']}" in page
    assert "Adaptive-k (Taguchi et al., EMNLP 2025)" in page


def test_settings_of_parts_and_of_lists_have_their_place_and_the_reason_in_conf() -> None:
    page = explain("search.dense.ivfpq")
    assert "search.dense.index.nprobe=32  (int >= 1)\n    lists searched per query" in page
    assert "search.dense.index.refine=8  (int >= 1)\n    codes are coarse" in page
    assert "rank.boost.signals.0.form=linear  (exp | linear)\n    exp: exp(-age / days)" in explain(
        "rank/boost/recency_linear")


def test_every_technique_can_be_explained() -> None:
    for name in own_choices(CONF):
        if "/" in name and name.partition("/")[0] in ("exp", "system", "serve", "read", "query", "arm"):
            assert explain(name).splitlines()[0].endswith(f"={name.rpartition('/')[2]}")


def test_a_setting_of_the_default_technique_and_one_of_the_run() -> None:
    assert "rank.select.k=10" in explain("rank.select.k")
    assert "  seed  0  recorded in the manifest" in explain("seed")
    assert "learn.folds" in explain("learn")
    assert "Nothing is done here." in explain("rank/rerank/none")


@pytest.mark.parametrize(("name", "fix"), [
    ("rank/selct", "did you mean 'rank/select'?"), ("rank.selct", "did you mean 'rank/select'?"),
    ("rank/select/gpa", "did you mean 'gap'?"), ("gap", "memlab explain rank/select/gap")])
def test_an_unknown_name_is_answered_with_the_nearest(name: str, fix: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MemlabError) as error:
        explain(name)
    assert fix in str(error.value)
    assert main(["explain", name]) == 2
    assert fix in capsys.readouterr().err


def test_techniques_of_a_folder_are_explained_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "techniques.yaml").write_text(
        "rank/select:\n  # Seven of them. Always.\n  seven:\n    _target_: memlab.rank.select.Fixed\n    k: 7\n")
    assert main(["explain", "rank/select", "rank/select/seven", f"conf_dir={tmp_path}"]) == 0
    page = capsys.readouterr().out
    assert "  Seven of them.\n" in page
    assert "rank.select.k=7" in page
    assert main(["explain", "rank/select/seven"]) == 2
