"""Keys of a configuration, in any text field, in every way out of a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from memlab.experiment.cluster.snapshot import take_snapshot
from memlab.experiment.harness.sweep import read
from memlab.models.http import HttpEmbedder
from memlab.run import main
from memlab.support.errors import MemlabError
from tests.examples import fewer
from tests.small import words

KEY = "sk-LEAKED-42-x9"
HTTP = ["embedder=openai", "embedder.key_env=null", "search/dense=flat"]
CHAT = ["query/expand=llm", "chat.model=tiny"]


def places(root: Path, key: str) -> list[str]:
    """Files below a folder that hold a key, in their bytes, their names, or the cells of a table."""
    bad = []
    for path in sorted(root.rglob("*")):
        text = path.relative_to(root).as_posix()
        if path.is_file():
            text += path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            text += repr(pl.read_parquet(path).to_dicts())
        bad += [path.name] if key in text else []
    return bad


@pytest.mark.parametrize("url", [f"http://user:{KEY}@127.0.0.1:9/v1", f"http://{KEY}@127.0.0.1:9/v1",
                                 f"http://127.0.0.1:9/v1?api_key={KEY}", "http://127.0.0.1:9/v1?api_key=qqq-LEAKED"])
def test_no_key_of_a_url_reaches_the_name_or_the_record_of_an_arm(url: str) -> None:
    swept = [*HTTP, *CHAT, f"embedder.url='{url}'", f"chat.url='{url}'", "track=none", "rank.select.k=3,5"]
    for arm in read(swept, multirun=True).arms:
        assert "LEAKED" not in arm.name + arm.config + arm.command + str(arm.arms_folder())
        assert arm.has_secret


def test_a_sweep_with_a_key_is_not_submitted(tmp_path: Path) -> None:
    arms = read(words(tmp_path, *CHAT, f"chat.url=http://me:{KEY}@host/v1")).arms
    with pytest.raises(MemlabError, match="the configuration holds a key or a variable's value"):
        take_snapshot(arms, [], None, 1)
    assert not places(tmp_path, KEY)


@pytest.mark.slow
# each example is two runs
@fewer(20, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.from_regex(r"(sk-|hf_|ghp_)[A-Za-z0-9]{10,20}", fullmatch=True),
       value=st.from_regex(r"[A-Z]{3}[a-z0-9]{9}", fullmatch=True))
def test_nothing_that_a_run_leaves_or_prints_holds_a_key(key: str, value: str, tmp_path_factory: pytest.TempPathFactory,
                                                         capfd: pytest.CaptureFixture[str],
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path_factory.mktemp("keys")
    monkeypatch.setenv("TOPHAT", value)
    fields = [f"chat.url=http://me:{key}@host/v1", "chat.key_env='${oc.env:TOPHAT}'", f"embedder.device={key}",
              f"name='a {key} ${{oc.env:TOPHAT}}'"]
    assert main(words(root, *fields)) == 0
    assert main(words(root, f"chat.url=http://me:{key}@host/v1?api_key={key}")) == 2  # must be quoted
    printed = capfd.readouterr()
    for secret in (key, value):
        assert places(root / "runs", secret) == []
        assert secret not in printed.out + printed.err


@pytest.mark.slow
def test_an_arm_that_fails_leaves_and_prints_no_key(tmp_path: Path, capfd: pytest.CaptureFixture[str],
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(f"cannot reach http://me:{KEY}@127.0.0.1:9/v1?api_key={KEY}")

    monkeypatch.setattr(HttpEmbedder, "encode", refused)
    given = [*HTTP, f"embedder.url='http://me:{KEY}@127.0.0.1:9/v1?api_key={KEY}'"]
    assert main([word for word in words(tmp_path, *given) if word != "search/dense=none"]) == 1
    printed = capfd.readouterr()
    assert "failed" in printed.out
    assert KEY not in printed.out + printed.err
    assert list((tmp_path / "runs").rglob("*.failed.txt"))
    assert places(tmp_path / "runs", KEY) == []
