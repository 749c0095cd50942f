from __future__ import annotations

from pathlib import Path

import pytest
from encoder_training.friendsqa import FriendsQA

from memlab.data.benchmarks import FOLDERS
from memlab.data.fetch import download
from tests.data.test_fetch import BASE, Server, left, server

pytestmark = pytest.mark.nightly

__all__ = ["server"]


def test_friendsqa_is_fetched_and_read(server: Server, shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "friendsqa"
    if not source.is_dir():
        pytest.skip(f"FriendsQA is not at {source}")
    server.bodies = {path.name: path.read_bytes() for path in source.glob("*.json")}
    home = download(FOLDERS["friendsqa"], base=BASE, folder=tmp_path, quiet=True)
    assert home == tmp_path / "friendsqa"
    assert [path.name for path in FriendsQA(path=home)._files()] == ["friendsqa_dev.json", "friendsqa_tst.json"]
    assert left(home) == set(server.bodies)
