"""Experiments and the profile for large models, run end to end on small random ones in folders of the hub's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.encoders import small_models
from memlab.run import main
from tests.models.chatserver import ChatServer
from tests.small import LIVES

pytestmark = pytest.mark.slow

@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds small models under the names of large ones."""
    root = tmp_path_factory.mktemp("hub")
    small_models.main(root)
    return root


@pytest.fixture(autouse=True)
def _from_the_folder(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hub)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def run(root: Path, *words: str) -> dict[str, Any]:
    """Run a command line and return the comparison of its arms."""
    assert main([*words, *LIVES, f"out={root}/runs", f"store={root}/store"]) == 0
    (file,) = (root / "runs").glob("*/*/comparison.json")
    return json.loads(file.read_text(encoding="utf-8"))


def manifests(root: Path) -> dict[str, dict[str, Any]]:
    """Return the manifest of each arm by the arm's name."""
    return {path.parent.name.rpartition("-")[0]: json.loads(path.read_text(encoding="utf-8"))
            for path in (root / "runs").glob("*/*/*/manifest.json")}


def test_encoders_crossed_with_rerankers(tmp_path: Path) -> None:
    compared = run(tmp_path, "+exp=encoders", "embedder=voyage_4_nano,minilm",
                   "+arm/encoders=none,bge_reranker_v2_m3", "track=none")
    assert set(compared["arms"]) == {"voyage_4_nano+none", "voyage_4_nano+bge_reranker_v2_m3", "minilm+none",
                                     "minilm+bge_reranker_v2_m3"}
    assert all(contrast["p"] is not None for contrast in compared["contrasts"][:3])
    models = manifests(tmp_path)["voyage_4_nano+bge_reranker_v2_m3"]["models"]
    assert models["dense"][0]["path"] == "voyageai/voyage-4-nano"
    assert models["rerank"][0]["path"] == "BAAI/bge-reranker-v2-m3"


def test_indexes_are_used_on_a_small_corpus_and_published_to_wandb(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    compared = run(tmp_path, "+exp=ann", "+arm/ann=flat,ivf,hnsw")
    assert set(compared["arms"]) == {"flat", "ivf", "hnsw"}
    assert len(list((tmp_path / "store" / "indexes").glob("*.faiss"))) == 2  # exact search builds none
    assert len(list((tmp_path / "runs" / "wandb").glob("**/*.wandb"))) == 3


def test_the_profile_for_gpus_runs_with_small_models_and_a_served_reader(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    server = ChatServer(lambda _: "Oslo")
    server.start()
    try:
        compared = run(tmp_path, "+profile=gpu", "search/dense=ivf", "search.dense.index.exact_below=0",
                       "data.pool=true", "track=none", f"chat.url={server.url}")
    finally:
        server.stop()
    (arm,) = compared["arms"].values()
    assert "answer/f1" in arm["metrics"]
    assert len(server.requests) == 16
    assert list((tmp_path / "store" / "indexes").glob("*.faiss"))
