"""Bad overrides: all of them, each with the nearest right one."""

from __future__ import annotations

from memlab.experiment.config.overrides import parse_all, read_overrides, valid_overrides

FAULTY = {
    "rank/select=gapp": "there is no 'gapp' here; did you mean 'gap'?",
    "rank/rerank=none,noe": "there is no 'noe' here; did you mean 'none'?",
    "+exp=adaptiv_k": "there is no 'adaptiv_k' here; did you mean 'adaptive_k'?",
    "exp=adaptive_k": "an experiment is added to the defaults; write +exp=adaptive_k",
    "profile=gpu": "a profile is added to the defaults; write +profile=gpu",
    "serch/dense=none": "there is no slot 'serch/dense'; did you mean 'search/dense'?",
    "query=llm": "'query' holds several slots; name one: query/classify, query/decompose",
    "rank/select.k=5": "a slot's setting is written with dots: rank.select.k=5",
    "daat.limit=3": "there is no setting 'daat.limit'; did you mean 'data'?",
    "data.path=a file=(1": "cannot be read as key=value; quote values",
    "rank/select": "cannot be read as key=value",
    "rank.select.k=" + "9" * 6000: "cannot be read as key=value",
    "seed=" + "[" * 3000: "cannot be read as key=value",
    "--multrun": "there is no such flag; did you mean '--multirun'?",
    "--seed=3": "settings have no dashes; write seed=VALUE",
    "~seed": "a setting of the run cannot be deleted",
    "name=???": "'???' is no value",
    "hydra.run.dir=x": "memlab reads nothing else of Hydra's than hydra.launcher and hydra.mode",
    "store=a": "store is given again, by store=b; leave one out",
    "out=x": "out is given again, by ++out=y",
}
GOOD = ["search/lexical=bm25,none", "rank.select.k=3", "+exp=adaptive_k_all", "data=locomo", "plan=true",
        "hydra.mode=MULTIRUN", "~track", "data.types=[multi-hop,temporal]", 'data.root="a b.json"', "store=b",
        "++out=y"]


def test_all_bad_words_are_answered_at_once_with_the_nearest_and_good_ones_pass() -> None:
    answers = dict(read_overrides([*FAULTY, *GOOD])[1])
    assert [*answers] == [*FAULTY]
    assert [word[:40] for word, start in FAULTY.items() if not answers[word].startswith(start)] == []


def test_settings_of_a_bad_slot_are_not_judged() -> None:
    words = parse_all(["rank/select=budgt", "rank.select.tokens=5", "rank.score.level=turn"])
    assert [*valid_overrides(words, [("rank/select=budgt", "unknown")])] == ["rank.score.level=turn"]
    assert valid_overrides(words, []) == words
