from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memlab.evaluate.peers.peer import find_peer, shipped_peers
from memlab.support.errors import MemlabError
from tests.evaluate.peers.test_measure import FAKES


def test_what_a_peer_declares_is_read_without_running_it(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("one==1.2  # the package\n\ntwo==3\n")
    (tmp_path / "adapter.py").write_text('"""About it\n\nMore."""\nLICENCE = "MIT"\nraise SystemExit\n')
    peer = find_peer(str(tmp_path))
    assert (peer.version, peer.requirements) == ("one 1.2", ("one==1.2", "two==3"))
    assert peer.declared == {"ABOUT": "About it", "LICENCE": "MIT", "SENDS": "unknown", "ENCODER": True, "BASE": "",
                             "VARIABLES": {}}
    assert not peer.installed()
    assert peer.python() != sys.executable == find_peer(str(FAKES / "vectors")).python()


@pytest.mark.parametrize(("files", "why"), [
    ({}, "requirements.txt: cannot be read"),
    ({"requirements.txt": "numpy\n"}, "'numpy' has no exact version. Fix: write PACKAGE==VERSION"),
    ({"requirements.txt": "", "adapter.py": "LICENCE = 1 +"}, "adapter.py: cannot be read"),
    ({"requirements.txt": "", "adapter.py": "LICENCE = open('x')"}, "SENDS, ENCODER, VARIABLES, BASE are constants")])
def test_a_folder_that_is_no_peer_is_told(tmp_path: Path, files: dict[str, str], why: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(MemlabError) as error:
        find_peer(str(tmp_path))
    assert why in str(error.value)


def test_every_shipped_peer_is_pinned_and_says_its_licence_and_what_it_sends() -> None:
    peers = [find_peer(name) for name in shipped_peers()]
    assert len(peers) > 10
    assert [peer.version for peer in peers if not peer.requirements or "unknown" in peer.declared.values()] == []


def test_an_environment_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("nothing==1\n")
    (tmp_path / "adapter.py").write_text("")
    with pytest.raises(MemlabError, match=r"-m venv .* failed: .*no-such-python"):
        find_peer(str(tmp_path)).install("/no-such-python")
