from __future__ import annotations

import json
import runpy
from pathlib import Path
from urllib.parse import unquote

import ir_measures
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, R, nDCG

from memlab.commands.score import main
from memlab.evaluate.export import escape, unit_names, write_qrels, write_run, write_trec
from memlab.evaluate.retrieval import KS, retrieval, scored_evidence
from memlab.pipeline.tables import frame


def with_ids(tables, session_name="s {}", turn_name="s{} t{}"):
    sessions, turns, questions = tables["sessions"], tables["turns"], tables["questions"]
    rows = [("session", s["corpus"], s["session"], None, None, session_name.format(s["session"]))
            for s in sessions.to_dicts()]
    rows += [("turn", t["corpus"], t["session"], t["turn"], None, turn_name.format(t["session"], t["turn"]))
             for t in turns.to_dicts()]
    rows += [("question", q["corpus"], None, None, q["question"], f"q {q['question']}") for q in questions.to_dicts()]
    columns = ["kind", "corpus", "session", "turn", "question", "name"]
    return tables.updated({"ids": frame("ids", {c: [r[i] for r in rows] for i, c in enumerate(columns)})})


def mean(metrics: pl.DataFrame, name: str) -> float:
    return metrics[name].drop_nulls().mean()


@pytest.mark.parametrize("level", ["turn", "session"])
def test_means_equal_those_of_tools_and_both_files_have_the_same_topics(
        make_random_world, tmp_path, level: str) -> None:
    tables = with_ids(make_random_world(7, questions=60, level=level))
    silent = tables["ranking"]["question"].unique().sort()[:5]  # nothing is ranked for these
    tables = tables.updated({"ranking": tables["ranking"].filter(~pl.col("question").is_in(silent.implode()))})
    write_trec(tables, tmp_path, name="an arm")
    ours = retrieval(tables)
    assert scored_evidence(tables)["question"].is_in(silent.implode()).any()
    pairs = {level: "", **({"session": ".sessions"} if level == "turn" else {})}
    for kind, infix in pairs.items():
        run = list(ir_measures.read_trec_run(str(tmp_path / f"run{infix}.trec")))
        qrels = list(ir_measures.read_trec_qrels(str(tmp_path / f"qrels{infix}.trec")))
        assert {row.query_id for row in run} == {row.query_id for row in qrels}
        names = {RR: "mrr", **{R @ k: f"recall@{k}" for k in KS}, **{nDCG @ k: f"ndcg@{k}" for k in KS}}
        for measure, value in ir_measures.calc_aggregate(list(names), qrels, run).items():
            assert value == pytest.approx(mean(ours, f"{kind}/{names[measure]}"), abs=1e-12), measure
    others = (tmp_path / "run.unjudged.trec").read_text().splitlines()
    judged = {line.split()[0] for line in (tmp_path / "qrels.trec").read_text().splitlines()}
    assert others
    assert not {line.split()[0] for line in others} & judged


def test_a_run_reaches_down_to_the_first_evidence(make_world, tmp_path) -> None:
    world = make_world({0: [["user"] * 300]}, {0: [(0, 249), (0, 280)], 1: [(0, 0)]}, {
        0: list(range(300)), 1: list(range(300))})
    write_run(world["ranking"], with_ids(world), tmp_path / "run.trec", name="x")
    ranks = [line.split()[3] for line in (tmp_path / "run.trec").read_text().splitlines() if line.startswith("q%200")]
    assert ranks == [str(rank) for rank in range(1, 251)]
    assert (tmp_path / "run.trec").read_text().count("q%201") == 200


def test_evidence_that_was_never_written_is_relevant_all_the_same(make_world, tmp_path) -> None:
    tables = with_ids(make_world({0: [["user"] * 2, ["user"]]}, {0: [(0, 0), (0, 1), (1, 0)]}, {0: [0]}, level="memory",
                                 spans=[(0, 0, [0])]), session_name="s{}")
    write_trec(tables, tmp_path, name="x")
    assert (tmp_path / "qrels.trec").read_text() == "q%200 0 s0 1\nq%200 0 s1 1\n"  # one memory a session
    two = with_ids(make_world({0: [["user"] * 2, ["user"]]}, {0: [(0, 0), (0, 1), (1, 0)]}, {0: [1, 0]}, level="memory",
                              spans=[(0, 0, [0]), (0, 0, [0])]), session_name="s{}")
    write_trec(two, tmp_path, name="x")
    assert (tmp_path / "qrels.trec").read_text().split("\n") == [
        "q%200 0 s0%20t0#1 1", "q%200 0 s0%20t0#2 1", "q%200 0 s0%20t1 1", "q%200 0 s1%20t0 1", ""]
    assert (tmp_path / "qrels.sessions.trec").read_text() == "q%200 0 s0 1\nq%200 0 s1 1\n"
    assert (tmp_path / "run.sessions.trec").read_text() == "q%200 Q0 s0 1 1.0 x\n"


def test_lines_by_hand(make_world, tmp_path) -> None:
    tables = with_ids(make_world({0: [["user"], ["user"]]}, {0: [(1, 0)]}, {0: [1, 0]}))
    write_run(tables["ranking"], tables, tmp_path / "run.trec", name="rank/select=gap, 5 %")
    write_qrels(tables, tmp_path / "qrels.txt")
    assert (tmp_path / "run.trec").read_text() == (
        "q%200 Q0 s1%20t0 1 1.0 rank/select=gap,%205%20%25\nq%200 Q0 s0%20t0 2 0.5 rank/select=gap,%205%20%25\n")
    assert (tmp_path / "qrels.txt").read_text() == "q%200 0 s1%20t0 1\n"


def test_passages_are_named_by_their_turns_and_judged_by_what_they_cover(make_world, tmp_path) -> None:
    tables = with_ids(make_world({0: [["user"] * 3, ["user"]]}, {0: [(0, 1), (1, None)]}, {0: [2, 1, 0]},
                                 level="memory", spans=[(0, 0, [0, 1]), (0, 0, [1, 2]), (0, 1, [0])]))
    write_qrels(tables, tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text() == "q%200 0 s%200:1-2 1\nq%200 0 s%200:2-3 1\n"


def test_a_session_in_two_places_of_a_haystack_has_two_names(make_world) -> None:
    tables = with_ids(make_world({0: [["user"], ["user"]]}, {0: [(0, 0)]}, {0: [0, 1]}, level="session"),
                      session_name="twin")
    assert unit_names(tables["units"], tables["ids"])["document"].to_list() == ["twin#1", "twin#2"]


def test_names_are_made_where_the_benchmark_has_none(make_world, tmp_path) -> None:
    tables = make_world({0: [["user"], ["user"]]}, {0: [(0, 0)]}, {0: [0, 1]})
    tables = tables.updated({"ids": frame("ids", {"kind": []})})
    write_run(tables["ranking"], tables, tmp_path / "run.trec", name="x")
    assert (tmp_path / "run.trec").read_text().splitlines()[0] == "0 Q0 0-0:1-1 1 1.0 x"


@given(st.text())
def test_an_escaped_name_is_one_word_and_can_be_read_back(name: str) -> None:
    word = escape(name)
    assert len(word.split()) == 1
    assert unquote(word) == (name or "\0")


SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "score_agreement" / "agreement.py"))


def test_the_export_of_a_run_with_unknown_documents_and_gaps_agrees(tmp_path: Path) -> None:
    (tmp_path / "theirs.trec").write_text("".join(
        f"life-0:{n} Q0 {document} {rank} {1 / rank} x\n" for n in range(0, 12, 2)
        for rank, document in enumerate(["fact-1", "fact-2", *(f"s{(n * 7 + i) % 20}" for i in range(15))], 1)))
    assert main([str(tmp_path / "theirs.trec"), "data.limit=12", f"out={tmp_path}"]) == 0
    (folder,) = tmp_path.glob("score/*/theirs-*")
    for figures in SCRIPT["compare"](folder).values():
        assert figures["memlab"]["mrr"] > 0
        for values in figures.values():
            assert values == pytest.approx(figures["memlab"], abs=1e-9)
    assert main([str(folder / "run.trec"), "data.limit=12", f"out={tmp_path}"]) == 0  # and read back
    (again,) = tmp_path.glob("score/*/run-*")
    assert json.loads((again / "metrics.json").read_text()) == json.loads((folder / "metrics.json").read_text())
