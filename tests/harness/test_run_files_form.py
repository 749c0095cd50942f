"""A run folder of another form is named with its file and field, and stops no report of the others."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.harness.results import finished_arms, read_arm
from memlab.report.build import build
from memlab.runtime.foreign import read_json
from memlab.store import store_at
from tests.sealing import seal
from tests.small import arm


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run")
    one = arm(root)
    one.run(store_at(str(root / "store")))
    return one.folder()


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "runs" / "exp" / "data" / finished.name))


@pytest.mark.parametrize(("changes", "field"), [
    ({"constant_k": 3}, "constant_k"), ({"constant_k": {"m": [{"k": 1, "tokens": 2.0}]}}, "constant_k.m.0.value"),
    ({"constant_k": {"m": [{"k": "1", "tokens": 2.0, "value": 0.5}]}}, "constant_k.m.0.k"),
    ({"reliability": [3]}, "reliability.0"), ({"importances": "all"}, "importances"), ({"told": {"x": 3}}, "told.x"),
    ({"importances": [{"feature": 1, "share": 1.0}]}, "importances.0.feature"),
    ({"importances": [{"feature": "a", "share": None}]}, "importances.0.share"),
    ({"replies": {"answer": {"m": {"replies": 1}}}}, "replies.answer.m.prompt_tokens"),
    ({"replies": {"answer": {"m": 1}}}, "replies.answer.m"),
    ({"notes": "one"}, "notes"), ({"notes": [["one"]]}, "notes.0"),
    ({"pipeline": []}, "pipeline"), ({"arm": ["one"]}, "arm"), ({"total_seconds": float("inf")}, "total_seconds")])
def test_a_manifest_of_another_form_is_named(folder: Path, changes: dict[str, Any], field: str) -> None:
    seal(folder, **changes)
    with pytest.raises(MemlabError, match=rf"manifest\.json: it is not as memlab writes it: {field}"):
        read_arm(folder)


@pytest.mark.parametrize("field", ["arm", "finished", "told", "costs", "replies", "haystack"])
def test_a_manifest_that_lacks_a_field_is_named(folder: Path, field: str) -> None:
    manifest = read_json(folder / "manifest.json")
    del manifest[field]
    (folder / "manifest.json").unlink()
    seal(folder, **manifest)
    with pytest.raises(MemlabError, match=rf"manifest\.json: it is not as memlab writes it: {field}: Field required"):
        read_arm(folder)


@pytest.mark.parametrize("name", ["questions", "ranking", "context", "shown", "classes"])
def test_a_missing_table_is_named(folder: Path, name: str) -> None:
    (folder / f"{name}.parquet").unlink()
    seal(folder)
    with pytest.raises(MemlabError, match=rf"{name}\.parquet: cannot be read .*Fix: delete the folder"):
        read_arm(folder)


@pytest.mark.parametrize("metrics", ['{"m": "high"}', '{"m": [1]}', '{"m": NaN}'])
def test_metrics_are_numbers(folder: Path, metrics: str) -> None:
    (folder / "metrics.json").write_text(metrics)
    seal(folder)
    with pytest.raises(MemlabError, match=r"metrics\.json: it is not as memlab writes it: m"):
        read_arm(folder)


@pytest.mark.parametrize(("name", "change", "problem"), [
    ("questions", pl.lit("x").alias("scored"), "scored holds no true or false"),
    ("questions", pl.lit(None, pl.Boolean).alias("scored"), "is missing"),
    ("questions", pl.lit("x").alias("session/mrr"), "session/mrr holds no numbers"),
    ("questions", pl.lit(float("inf")).alias("session/mrr"), "session/mrr holds a number beyond"),
    ("questions", pl.lit(-1e300).alias("session/mrr"), "session/mrr holds a number beyond"),
    ("questions", pl.lit(float("nan")).alias("session/mrr"), "session/mrr holds a number beyond"),
    ("ranking", pl.lit(0.5).alias("rank"), "rank holds no whole numbers"),
    ("ranking", pl.lit("x").alias("tokens"), "tokens holds no numbers"),
    ("ranking", pl.lit("x").alias("lexical:turn"), "lexical:turn holds no numbers"),
    ("shown", pl.lit(1).alias("turns"), "turns holds no lists"),
    ("shown", pl.lit("x").alias("said_on"), "said_on holds no dates"),
    ("classes", pl.lit(1).alias("class"), "class holds no texts")])
def test_a_table_of_another_form_is_named(folder: Path, name: str, change: pl.Expr, problem: str) -> None:
    table = pl.read_parquet(folder / f"{name}.parquet")
    table.with_columns(change).write_parquet(folder / f"{name}.parquet")
    seal(folder)
    with pytest.raises(MemlabError, match=rf"{name}\.parquet: it is not as memlab writes it: .*{problem}"):
        read_arm(folder)


@pytest.mark.parametrize(("name", "column"), [("questions", "label_error"), ("questions", "group"),
                                              ("context", "text_id"), ("ranking", "score"), ("shown", "text"),
                                              ("shown", "said_on"),
                                              ("context", "tokens"), ("classes", "question")])
def test_a_missing_column_is_named(folder: Path, name: str, column: str) -> None:
    path = folder / f"{name}.parquet"
    pl.read_parquet(path).drop(column).write_parquet(path)
    seal(folder)
    with pytest.raises(MemlabError, match=f"has no column {column}"):
        read_arm(folder)


def test_the_other_arms_have_their_report(folder: Path) -> None:
    other = Path(shutil.copytree(folder, folder.with_name("two-00")))
    seal(other, arm="two", constant_k=3)
    found = finished_arms(folder.parent)
    assert [one.name for one in found.arms] == ["one"]
    assert "two-00" in found.broken[0]
    assert "constant_k" in build(folder.parent).markdown.read_text()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"question": "x", "hypothesis": "a"}', b'{"other": 1}',
                                     b"\xff"])
def test_answers_and_verdicts_of_another_form_are_named(folder: Path, content: bytes) -> None:
    for name in ("answers", "verdicts"):
        (folder / f"{name}.jsonl").write_bytes(content)
        seal(folder)
        with pytest.raises(MemlabError, match=rf"{name}\.jsonl: cannot be read"):
            getattr(read_arm(folder), name)


def test_a_table_whose_bytes_are_damaged_under_a_digest_that_fits_is_named(folder: Path) -> None:
    path = folder / "classes.parquet"
    whole = path.read_bytes()
    for at in range(0, len(whole), 13):
        path.write_bytes(whole[:at] + b"\xff\x00" + whole[at:])
        seal(folder)
        with suppress(MemlabError):
            assert read_arm(folder).classes is not None
