"""Readers of run folders on files that are almost right under digests that fit: a report, or a MemlabError."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.experiment.harness.results import finished_arms, read_arm
from memlab.experiment.harness.run_files import describe_files, plain_yaml
from memlab.report.build import build, inputs_digest, reported_runs, up_to_date
from memlab.stages.judge.accuracy import judge_warnings
from memlab.store import store_at
from tests.fuzz.mutation import EXAMPLES, as_json, as_lines, damaged, fuzz, json_bytes, mutated, outcome
from tests.small import arm

pytestmark = pytest.mark.slow

YAML = (b"name: one\nrank:\n  select:\n    k: 10\n_target_: memlab.stages.rank.select.Fixed\ncontrasts:\n- arm: gap\n"
        b"  against: fixed_10\n  metric: session/recall_all@10\nlist: [1, 2.5, null, true]\n")
ENDS = (b"&a [*a]", b"!!python/object/apply:os.system [x]", b"? [a]\n: b\n", b"- {", b"\t", b"2001-99-99", b"0o9",
        b"<<: 3\n", b"contrasts: 3\n", b"contrasts: [[1]]\n", b"name: .inf\n", b"name: 2001-01-01\n", b"1: 2\n",
        b"null: x\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run")
    one = arm(root)
    one.run(store_at(str(root / "store")))
    return one.folder()


def copied(finished: Path, place: Path) -> Path:
    """Return a copy of the run folder in runs/exp/data, in the place of an earlier one."""
    shutil.rmtree(place / "runs", ignore_errors=True)
    return Path(shutil.copytree(finished, place / "runs" / "exp" / "data" / finished.name))


def seal(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest whose digests fit the files of its folder."""
    (folder / "manifest.json").write_bytes(json_bytes({**manifest, **describe_files(folder)}))


whole_reports = settings(fuzz, max_examples=EXAMPLES if EXAMPLES >= 1000 else max(5, EXAMPLES // 4))


def report(folder: Path) -> Any:
    return outcome(lambda: build(folder.parent))


@whole_reports
@given(st.data())
def test_manifests(tmp_path: Path, finished: Path, data: st.DataObject) -> None:
    folder = copied(finished, tmp_path)
    manifest = data.draw(mutated(json.loads((finished / "manifest.json").read_text())))
    if isinstance(manifest, dict):
        seal(folder, manifest)
    else:
        (folder / "manifest.json").write_bytes(json_bytes(manifest))
    report(folder)


@fuzz
@given(st.data())
def test_manifests_whose_digests_do_not_fit(tmp_path: Path, finished: Path, data: st.DataObject) -> None:
    folder = copied(finished, tmp_path)
    whole = json.loads((finished / "manifest.json").read_text())
    (folder / "manifest.json").write_bytes(data.draw(as_json(mutated(whole))))
    outcome(lambda: finished_arms(folder.parent))
    outcome(lambda: read_arm(folder))
    outcome(lambda: inputs_digest(folder.parent, (), (), {}))


@whole_reports
@given(damaged(st.just(YAML)), st.sampled_from((b"", *ENDS)))
def test_configurations(tmp_path: Path, finished: Path, yaml: bytes, end: bytes) -> None:
    folder = copied(finished, tmp_path)
    (folder / "config.yaml").write_bytes(yaml + end)
    outcome(lambda: plain_yaml((yaml + end).decode("utf-8", "replace"), folder / "config.yaml"))
    seal(folder, json.loads((finished / "manifest.json").read_text()))
    report(folder)


ANSWER = {"question": 0, "sample": 0, "question_id": "q", "hypothesis": "a cat", "tokens": 3, "seconds": 0.5}
VERDICT = {"question": 0, "judge": "strict", "correct": True, "score": 1.0, "reply": "yes"}


@whole_reports
@given(as_lines(mutated([ANSWER, ANSWER])), as_lines(mutated([VERDICT, VERDICT])))
def test_answers_and_verdicts(tmp_path: Path, finished: Path, answers: bytes, verdicts: bytes) -> None:
    folder = copied(finished, tmp_path)
    (folder / "answers.jsonl").write_bytes(answers)
    (folder / "verdicts.jsonl").write_bytes(verdicts)
    seal(folder, json.loads((finished / "manifest.json").read_text()))
    report(folder)


@fuzz
@given(as_json(mutated({"arms": {"one": {"folder": "one-1"}, "gap": {"folder": "gap-2"}}, "inputs": "ab"})))
def test_records_beside_a_report(tmp_path: Path, content: bytes) -> None:
    for name in ("comparison.json", "report_inputs.json", "judges.json", "report.html", "report.md"):
        (tmp_path / name).write_bytes(content)
    outcome(lambda: up_to_date(tmp_path, "ab"))
    outcome(lambda: reported_runs(tmp_path))


@fuzz
@given(as_json(mutated({"judges": {"strict": {"specificity": {"value": 0.5}, "sensitivity": {"value": 0.9}}}})))
def test_calibrations_of_judges(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "judges.json").write_bytes(content)
    outcome(lambda: judge_warnings(["strict", "other"], tmp_path / "judges.json"))
