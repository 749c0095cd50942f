from __future__ import annotations

import json
from datetime import datetime
from itertools import chain
from pathlib import Path

import polars as pl
import pytest

from memlab.evaluate.peers.measure import PeerResult, TurnMap, memories, result_file, run_peer
from memlab.evaluate.peers.models import PeerModels
from memlab.evaluate.peers.peer import find_peer
from memlab.evaluate.peers.process import PeerFailure
from memlab.pipeline.tables import Tables
from memlab.store import Store
from tests.small import lives
from tests.stages.search.world import WordEmbedder

FAKES = Path(__file__).with_name("fakes")
WORDS = WordEmbedder()


@pytest.fixture(scope="module")
def data() -> Tables:
    return lives(lives=1, sessions=6, questions=4).load()


def ranked(name: str, data: Tables, folder: Path, limit: float = 60) -> PeerResult:
    """What a fake peer ranks, ten results a question."""
    run_peer(find_peer(str(FAKES / name)), list(memories(data)), PeerModels(Store(folder), WORDS), folder / "kept.json",
             False, 10, limit)
    return PeerResult(**json.loads((folder / "kept.json").read_text()))


def test_a_turn_is_found_by_id_by_text_and_by_a_part_of_it() -> None:
    turns = TurnMap({"t0": "Ann: I have a cat.", "t1": "Ben: Yes.", "t2": "Ann: It sleeps all day.", "t3": "Ben: yes."})
    assert turns.places(["t2", "ann:  I HAVE a cat.", "t2"]) == ([2, 0], 0)
    assert turns.places(["Ben: Yes.", "Ben: Yes.", "Ben: Yes."]) == ([1, 3], 0)  # said twice, then named again
    assert turns.places(["It sleeps all day"]) == ([2], 0)
    assert turns.places(["Talk of May:\nAnn: I have a cat.\nBen: Yes."])[0] == [0, 1, 3]
    assert turns.places(["a", "Ann has a dog"]) == ([], 2)


def test_no_memory_holds_a_session_of_a_later_day_than_its_questions(data: Tables) -> None:
    days = data["sessions"].sort("said_on")["said_on"].dt.date().to_list()
    middle = datetime.combine(days[2], datetime.min.time())
    early = data["questions"].with_columns(asked_on=pl.when(pl.col("question") == data["questions"]["question"].min())
                                           .then(pl.lit(middle)).otherwise("asked_on").cast(pl.Datetime("us")))
    found = list(memories(data.updated({"questions": early})))
    assert sorted(len(memory.questions) for memory in found) == [1, 3]
    assert sorted(len(memory.sessions) for memory in found) == [sum(day <= days[2] for day in days), 6]
    for memory in found:
        turns = list(chain(*memory.sessions))
        assert len({turn["id"] for turn in turns}) == len(turns) == len(memory.documents)
        assert max(turn["time"] for turn in turns)[:10] <= min(str(day) for *_, day in memory.questions)[:10]
        assert {*turns[0]} == {"id", "text", "role", "speaker", "session", "time"}


def test_ids_and_texts_mean_the_same_turns(data: Tables, tmp_path: Path) -> None:
    by_id, by_text = ranked("vectors", data, tmp_path), ranked("texts", data, tmp_path)
    assert by_id.ranked == by_text.ranked
    assert {len(documents) for documents in by_id.ranked.values()} == {10}
    assert by_text.figures["unmapped"] == by_id.figures["short"] == by_id.figures["empty"] == 0
    assert {"adding", "asking", "disk", "packages"} <= by_id.figures.keys()


def test_a_peer_that_dies_in_its_third_session_says_where_and_its_last_words(data: Tables, tmp_path: Path) -> None:
    with pytest.raises(PeerFailure, match=r"the process ended in add \(status 7\): out of luck"):
        ranked("dies", data, tmp_path)
    assert not (tmp_path / "kept.json").exists()


@pytest.mark.slow
def test_a_peer_that_never_answers_is_ended(data: Tables, tmp_path: Path) -> None:
    with pytest.raises(PeerFailure, match="search gave no answer within 5 seconds"):
        ranked("hangs", data, tmp_path, limit=5)


@pytest.mark.parametrize(("methods", "why"), [
    ("", r"load raised TypeError: there is no class with the methods add.*search"),
    ("def search(self, query, k, now): return int('x')", r"adapter\.py, line 5\)"),
    ("def search(self, query, k, now): return [3]", r"search returned \[3\], where ids or texts")])
def test_a_fault_of_an_adapter_is_named_with_its_line(methods: str, why: str, data: Tables, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    (tmp_path / "adapter.py").write_text(f"ENCODER = False\nclass One:\n    def __init__(self, folder, url): pass\n"
                                         f"    def add(self, turns): pass\n    {methods}\n")
    asked, store = list(memories(data)), Store(tmp_path)
    with pytest.raises(PeerFailure, match=why):
        run_peer(find_peer(str(tmp_path)), asked, PeerModels(store, WORDS), tmp_path / "kept.json", False, 10, 60)
    assert store.made["vectors"] == 0


def test_texts_that_nobody_said_are_counted(data: Tables, tmp_path: Path) -> None:
    result = ranked("invents", data, tmp_path)
    assert result.figures["unmapped"] == result.figures["returned"] == 3 * len(result.ranked)
    assert result.figures["short"] == len(result.ranked)
    assert "12 of 12 results are no turn" in result.notes("invents", "no package")[0]


def test_swallowed_errors_are_kept_as_warnings(data: Tables, tmp_path: Path) -> None:
    result = ranked("hybrid", data, tmp_path)
    assert result.ranked == ranked("vectors", data, tmp_path).ranked
    assert "full text search failed" in result.warnings[0]


def test_a_result_is_kept_by_all_that_decides_it(tmp_path: Path) -> None:
    peer = find_peer(str(FAKES / "vectors"))
    assert result_file(peer, {"k": 10}) == result_file(peer, {"k": 10}) != result_file(peer, {"k": 20})
    assert result_file(peer, {"k": 10}).name != result_file(find_peer(str(FAKES / "texts")), {"k": 10}).name


def test_a_result_of_a_peer_that_extends_another_is_kept_by_both(tmp_path: Path) -> None:
    for name, text in (("one", ""), ("two", 'BASE = "one"\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter.py").write_text(text)
        (tmp_path / name / "requirements.txt").touch()
    first = result_file(find_peer(str(tmp_path / "two")), {})
    (tmp_path / "one" / "adapter.py").write_text("# changed\n")
    assert result_file(find_peer(str(tmp_path / "two")), {}) != first
