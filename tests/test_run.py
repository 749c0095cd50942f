"""The command: exit status, what is printed, what lies where afterwards."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import hydra
import polars as pl
import pytest

from memlab.experiment.cluster import submit
from memlab.experiment.config.compose import _compose_files
from memlab.experiment.harness import staleness
from memlab.report import build
from memlab.run import main
from tests.small import LIVES, on_lives, words

pytestmark = pytest.mark.slow


def folders(root: Path, place: str = "single/synthetic") -> list[str]:
    return sorted(p.name.rpartition("-")[0] for p in (root / "runs" / place).iterdir() if p.is_dir())


def test_one_arm_then_the_same_line_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(tmp_path, "rank/select=gap")) == 0
    told = capsys.readouterr().out
    assert "single on synthetic: 1 arm, 1 with a twin of constant K at the same tokens\n" in told
    assert f"report: {tmp_path}/runs/single/synthetic/report.html" in told.splitlines()[-1]
    place = tmp_path / "runs" / "single" / "synthetic"
    assert folders(tmp_path) == ["gap+dense=none", "gap+dense=none.twin"]
    assert {"report.html", "report.md", "comparison.json"} <= {p.name for p in place.iterdir()}
    before = {p: p.stat().st_mtime_ns for p in place.glob("*/*")}
    assert main(words(tmp_path, "rank/select=gap")) == 0
    told = capsys.readouterr().out
    assert "1 arm, 1 finished before" in told
    assert {p: p.stat().st_mtime_ns for p in place.glob("*/*")} == before


def test_a_finished_sweep_again_composes_parses_and_builds_nothing_and_prints_the_same(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def forget() -> None:
        """Forget what this process has read and composed, as the next one does."""
        _compose_files.cache_clear()
        staleness.source_digest.cache_clear()

    line = ["-m", *words(tmp_path, "rank.select.k=3,4", "rank/select=fixed")]
    forget()
    assert main(line) == 0
    first = capsys.readouterr().out

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    for module, name in ((hydra, "compose"), (staleness, "digest_of_files"), (build, "build")):
        monkeypatch.setattr(module, name, refuse)
    for plan in (False, True):
        forget()
        assert main([*line, *["plan=true"] * plan]) == 0
        again = capsys.readouterr().out
        if plan:
            assert again.count("│ finished │") == 2
        else:
            shown = again.splitlines()[3:]  # after the title and two arms
            assert len(shown) > 10
            assert first.splitlines()[-len(shown):] == shown


def test_a_sweep_by_flag_and_one_failing_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # memories of several kinds cannot be ranked as they are
    line = ["-m", *words(tmp_path, "write/chunk=turn,several,window", "rank.score.level=memory")]
    assert main(line) == 1
    told = capsys.readouterr().out
    assert "several failed: " in told
    assert "1 of 3 arms failed: several" in told.splitlines()[-1]
    assert folders(tmp_path) == ["turn", "window"]
    place = tmp_path / "runs" / "single" / "synthetic"
    comparison = json.loads((place / "comparison.json").read_text())
    assert list(comparison["arms"]) == ["turn", "window"]
    assert comparison["missing"] == ["several"]
    assert "several" in (place / "report.md").read_text()
    (failure,) = place.glob("several-*.failed.txt")
    assert "Traceback" in failure.read_text()
    assert "Traceback" not in told
    assert main(line) == 1  # the others are finished, the same one fails again
    assert "3 arms, 2 finished before" in capsys.readouterr().out


def test_what_all_arms_have_to_make_is_said_before_them_and_the_time_left_after_each(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "WORTH_SAYING", 0.0)
    line = ["-m", *LIVES, "rank.select.k=3,4,5", f"out={tmp_path}/runs", f"store={tmp_path}/store"]
    for times in (1, 0):
        assert main(line) == 0
        told = capsys.readouterr().out
        assert len(re.findall(r"all arms: \d+ texts to encode \(", told)) == times
        assert re.findall(r"arm (\d) of 3 is done, at most about \d+ s left\n", told) == ["1", "2"] * times


def test_an_experiment_and_one_of_its_arms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(tmp_path, "+exp=adaptive_k", "rank/select=gap")) == 0
    alone = capsys.readouterr().out
    assert "adaptive_k on synthetic: 1 arm" in alone
    assert "• gap " in alone
    assert ("left out: marginal > constant, marginal > budget, by_type > constant_by_class, calibrated > constant "
            "(contrasts of arms that these arguments leave out)\n") in alone
    one = json.loads((tmp_path / "runs/adaptive_k/synthetic/comparison.json").read_text())
    assert (one["missing"], [c["arm"] for c in one["contrasts"]]) == ([], ["gap"])
    assert main(words(tmp_path, "+exp=adaptive_k", "rank/select=fixed_10,by_type")) == 0
    told = capsys.readouterr().out
    assert ("adaptive_k on synthetic: 2 arms, 1 with a twin of constant K at the same tokens; an arm is one "
            "configuration\n") in told
    assert folders(tmp_path, "adaptive_k/synthetic") == ["by_type", "by_type.twin", "fixed_10", "gap", "gap.twin"]
    comparison = json.loads((tmp_path / "runs/adaptive_k/synthetic/comparison.json").read_text())
    tested = {c["arm"]: c["p"] for c in comparison["contrasts"]}
    assert set(tested) == {"by_type", "gap"}
    assert tested["by_type"] is not None
    assert tested["gap"] is not None  # it was found among finished runs


def test_faults_end_with_status_2_before_anything_is_loaded(tmp_path: Path) -> None:
    code = ("import sys; from memlab.run import main; status = main(sys.argv[1:]); "
            "loaded = {'torch', 'transformers', 'sentence_transformers', 'faiss', 'wandb'} & set(sys.modules); "
            "print(f'loaded: {sorted(loaded)}'); sys.exit(status)")
    line = ["rank/select=gapp", "rank.score.lvl=turn", "data.livs=3", "serch/dense=none", "--multrun",
            f"out={tmp_path}/runs"]
    done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "loaded: []" in done.stdout
    assert "5 faults:" in done.stdout
    for nearest in ("'gap'", "'level'", "'lives'", "'search/dense'", "'--multirun'"):
        assert f"did you mean {nearest}" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()


def test_the_real_encoder_from_cold_and_warm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = on_lives(tmp_path, "name=both")
    assert main(line) == 0
    assert "vectors made" in capsys.readouterr().out
    (folder,) = (tmp_path / "runs" / "single" / "synthetic").glob("both-*")
    ranking = pl.read_parquet(folder / "ranking.parquet")
    assert {"dense:turn", "lexical:turn"} <= set(ranking.columns)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["made"]["vectors"] > 100
    assert manifest["truncated"] == {"turn": 0.0}
    assert manifest["models"] == {"dense": [{"name": "minilm", "path": None, "revision": None}]}
    warm = on_lives(tmp_path, "name=other", "rank.select.k=3")
    script = f"import sys; from memlab.run import main; main({warm}); print('loaded:', 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert "no model was asked anything new" in done.stdout
    assert "loaded: False" in done.stdout  # width and truncation of what is stored are stored as well
    (other,) = (tmp_path / "runs" / "single" / "synthetic").glob("other-*")
    assert pl.read_parquet(other / "ranking.parquet").drop("selected").equals(ranking.drop("selected"))


def test_data_without_questions_or_with_faults_are_refused_once_before_any_arm(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "chats"
    folder.mkdir()
    (folder / "sessions.jsonl").write_text(json.dumps(
        {"corpus": "me", "session": "one", "said_on": "2024-01-02",
         "turns": [{"role": "user", "text": "I have a cat."}]}) + "\n")
    words = ["-m", "data=custom", f"data.path={folder}", "search/dense=none", "track=none", f"out={tmp_path}/runs",
             f"store={tmp_path}/store", "rank.select.k=1,2"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.count("there are no questions") == 1
    assert "memlab questions" in out
    (folder / "questions.jsonl").write_text('{"question": "q1"}\n')
    assert main(words) == 2
    out = capsys.readouterr().out
    assert out.count("field corpus: is missing") == 1
    assert not list(tmp_path.rglob("*.failed.txt"))
