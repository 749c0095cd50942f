from __future__ import annotations

import json
from pathlib import Path

import huggingface_hub
import pytest

from memlab.experiment.config.instantiate import choice_settings
from memlab.models.local.base import trusted_code
from memlab.models.local.embedder import SentenceEmbedder
from memlab.support.errors import DiskFault, MemlabError, MissingFiles
from tests.faults.limits import largest_file

COMMIT = "0123456789abcdef" * 2 + "01234567"
PINNED = {"path": "some/model", "name": "x", "trust_remote_code": True}


@pytest.mark.parametrize("revision", [None, "main", "0123456", COMMIT.upper()])
def test_code_of_the_hub_is_refused_unless_a_commit_is_named(revision: str | None) -> None:
    with pytest.raises(MissingFiles, match=r"read that code, then embedder\.revision=COMMIT"):
        SentenceEmbedder(**PINNED, revision=revision).dim()


def unreachable(*_: object, **__: object) -> None:
    raise OSError("no network")


def test_code_of_a_commit_and_models_without_code_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    for model in (SentenceEmbedder(**PINNED, revision=COMMIT), SentenceEmbedder(path="some/model", name="x")):
        with pytest.raises(MissingFiles, match="the model hub did not give"):  # no network: it was asked
            model.dim()


def test_a_disk_without_room_for_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        (tmp_path / "hub").mkdir()
        with largest_file(10):
            (tmp_path / "hub" / "model.safetensors").write_bytes(bytes(100))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", full)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(DiskFault, match=f"^{tmp_path / 'hub'}: cannot be written: .*HF_HOME=DIR"):
        SentenceEmbedder(path="some/model", name="x").dim()


@pytest.mark.parametrize("name", ["gte_base", "nomic", "nomic_v2", "voyage_4_nano"])
def test_every_embedder_with_code_of_its_own_asks_for_a_commit(name: str) -> None:
    fields = {k: v for k, v in choice_settings(f"embedder/{name}").items() if k != "_target_"}
    with pytest.raises(MissingFiles, match="revision is null"):
        SentenceEmbedder(**fields).dim()


def model(folder: Path, *classes: str) -> Path:
    classes_by_kind = {"AutoModel": classes[0], "AutoTokenizer": [*classes]}
    (folder / "config.json").write_text(json.dumps({"auto_map": classes_by_kind}))
    return folder


def test_code_of_another_repository_is_refused_unless_pinned(tmp_path: Path) -> None:
    assert trusted_code(model(tmp_path, "modeling.Net"), None, "embedder.path") == ""  # code in the folder
    folder = model(tmp_path, "modeling.Net", "other/code--modeling.Net")
    with pytest.raises(MemlabError, match=r"runs code of other/code.*embedder\.code_revision=COMMIT"):
        trusted_code(folder, None, "embedder.path")
    with pytest.raises(MissingFiles, match="code_revision is 'main'"):
        trusted_code(folder, "main", "embedder.path")
    assert trusted_code(folder, COMMIT, "embedder.path") == COMMIT
    (tmp_path / "config.json").write_text("{")  # a damaged file names no code
    assert trusted_code(tmp_path, None, "embedder.path") == ""
