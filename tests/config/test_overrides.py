"""Bad overrides: all of them, each with the nearest right one."""

from __future__ import annotations

import pytest

from memlab.config.overrides import faults, groups, unknown_settings, valid_overrides


@pytest.mark.parametrize(("word", "expected"), [
    ("rank/select=gapp", "there is no 'gapp' here; did you mean 'gap'?"),
    ("rank/select=gap,fixd", "there is no 'fixd' here; did you mean 'fixed'?"),
    ("+exp=adaptiv_k", "there is no 'adaptiv_k' here; did you mean 'adaptive_k'?"),
    ("exp=adaptive_k", "an experiment is added to the defaults; write +exp=adaptive_k"),
    ("profile=gpu", "a profile is added to the defaults; write +profile=gpu"),
    ("serch/dense=none", "there is no slot 'serch/dense'; did you mean 'search/dense'?"),
    ("daat.limit=3", "there is no setting 'daat.limit'; did you mean 'data'?"),
    ("data.path=a file=(1", "cannot be read as key=value; quote values"),
    ("rank/select", "cannot be read as key=value"),
    ("name=a\udce9", "holds letters that this system's encoding lacks"),
    ("--multrun", "there is no such flag; did you mean '--multirun'?"),
    ("hydra.run.dir=x", "memlab reads nothing else of Hydra's than hydra.launcher and hydra.mode"),
    ("hydra.job.name=x", "memlab reads nothing else of Hydra's"), ("+hydra.x=1", "memlab reads nothing else of"),
])
def test_a_bad_word_is_answered_with_the_nearest(word: str, expected: str) -> None:
    ((told, fault),) = faults([word])
    assert told == word
    assert fault.startswith(expected)


def test_all_are_told_at_once_and_good_ones_pass() -> None:
    good = ["rank/select=fixed,gap", "rank.select.k=3", "+exp=adaptive_k", "data=locomo", "out=x", "plan=true",
            "hydra.mode=MULTIRUN", "~track", "data.types=[multi-hop,temporal]", 'data.path="a b.json"']
    assert faults(good) == []
    bad = ["rank/select=gapp", "daat.limit=3", "serch/dense=none"]
    assert [word for word, _ in faults([*good, *bad])] == bad


def test_settings_are_held_against_what_was_composed() -> None:
    cfg = {"rank": {"select": {"_target_": "x", "k": 10}}, "embedder": "${other}", "seed": 0}
    good = ["rank.select.k=1", "+rank.select.new=1", "++rank.select.new=1", "embedder.path=x", "seed=1",
            "rank/select=gap"]
    assert unknown_settings(good, cfg) == {}
    told = unknown_settings(["rank.select.kk=1", "rank.selct.k=1", "sead=1"], cfg)
    assert told["rank.select.kk=1"] == "rank.select has no setting 'kk'; did you mean 'k'? (known: k)"
    assert told["rank.selct.k=1"] == "rank has no setting 'selct'; did you mean 'select'? (known: select)"
    assert "did you mean 'seed'" in told["sead=1"]


def test_settings_of_a_bad_slot_are_not_judged() -> None:
    words = ["rank/select=budgt", "rank.select.tokens=5", "rank.score.level=turn"]
    assert valid_overrides(words, ["rank/select=budgt"]) == ["rank.score.level=turn"]
    assert valid_overrides(words, []) == words


def test_groups_are_the_folders_that_hold_files() -> None:
    assert {"data", "rank/select", "search/dense", "exp", "track"} <= groups()
    assert "rank" not in groups()


@pytest.mark.parametrize("word", ["rank.select.k=" + "9" * 6000, "rank/select=" + "9" * 6000, "seed=" + "[" * 3000])
def test_a_word_that_no_parser_takes_is_a_fault(word: str) -> None:
    ((_, fault),) = faults([word])
    assert "cannot be read as key=value" in fault
