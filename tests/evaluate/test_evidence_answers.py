from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from memlab.evaluate.evidence import DEEP, STEPS, answer_metrics, evidence_steps, judge_columns, last_steps
from memlab.evaluate.export import write_answers
from memlab.evaluate.summary import averages, per_question, summary
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame

SAID = "It was <b>Rex</b>,\nnot \x1b[31mMax"


def asked(world: Tables) -> Tables:
    """A world in which the first question was answered twice (a vote), and judged by two judges."""
    first, second = world["questions"]["question"][:2]
    answers = frame("answers", {"question": [first, first, second], "sample": [0, 1, 0],
                                "text_id": [text_hash(SAID)] * 3,
                                "prompt_tokens": [100, 100, 7], "completion_tokens": [5, 6, 1],
                                "seconds": [.5, .5, .1], "dropped": [2, 1, 0]})
    verdicts = frame("verdicts", {"question": [first, second, first], "judge": ["f1", "f1", "strict"],
                                  "score": [.4, 1.0, None], "correct": [False, True, None], "reply": ["", "", "eh"]})
    texts = pl.concat([world["texts"], texts_frame([SAID])])
    ids = frame("ids", {"kind": ["question"], "question": [first], "name": ["gpt4_7"]})
    return world.updated({"answers": answers, "verdicts": verdicts, "texts": texts, "ids": ids})


def test_a_judge_is_a_column_and_a_vote_costs_all_its_samples(make_random_world) -> None:
    rows = answer_metrics(asked(make_random_world(1)))
    first = rows.row(0, named=True)
    assert first == {"question": first["question"], "answer/f1": .4, "answer/strict": None,
                     "answer/prompt_tokens": 200.0, "answer/completion_tokens": 11.0, "answer/dropped": 2.0}
    assert rows["answer/f1"].to_list()[:3] == [.4, 1.0, None]
    assert judge_columns(rows.columns) == ["answer/f1", "answer/strict"]


def test_where_nobody_was_asked_there_is_no_column(make_random_world) -> None:
    world = make_random_world(1)
    assert answer_metrics(world).columns == ["question"]
    assert not [c for c in per_question(world).columns if c.startswith("answer/")]


def test_averages_are_over_the_questions_that_a_judge_scored(make_random_world) -> None:
    rows = per_question(asked(make_random_world(1)))
    figures = averages(rows)
    assert figures["answer/f1"] == .7
    assert figures["answer/prompt_tokens_mean"] == 103.5
    assert "answer/strict" not in figures
    assert summary(rows)["answer/f1"]["n"] == 2


def test_answers_are_written_under_the_benchmarks_names_and_come_back_to_the_byte(make_random_world, tmp_path: Path
                                                                                  ) -> None:
    world = asked(make_random_world(1))
    write_answers(world, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    second = str(world["questions"]["question"][1])  # it has no name
    assert [(x["question_id"], x["sample"]) for x in lines] == [("gpt4_7", 0), ("gpt4_7", 1), (second, 0)]
    assert lines[0]["hypothesis"] == SAID
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [(v["judge"], v["correct"]) for v in verdicts] == [("f1", False), ("strict", None), ("f1", True)]
    empty = tmp_path / "none"
    empty.mkdir()
    write_answers(make_random_world(1).updated({"ids": world["ids"]}), empty)
    assert list(empty.iterdir()) == []


def world(make_world) -> Tables:
    """One session of sixty turns, of which the last is not written; question 0 ranks all but turn 58."""
    made = make_world({0: [["user"] * 60]}, {0: [(0, 0), (0, 1), (0, 5), (0, 55), (0, 58), (0, 59)], 1: [(0, None)]},
                      {0: [t for t in range(60) if t < 58], 1: [3]}, selected=3)
    memories = frame("memories", {"memory": list(range(59)), "corpus": [0] * 59, "session": [0] * 59,
                                  "turns": [[t] for t in range(59)]})
    context = made["context"].filter(~((pl.col("question") == 0) & (pl.col("unit") == 1)))  # the packer left it out
    return made.updated({"memories": memories, "context": context})


def test_every_step_is_told(make_world) -> None:
    found = evidence_steps(world(make_world)).filter(pl.col("question") == 0)
    assert dict(zip(found["turn"], (STEPS[s] for s in found["step"]))) == {
        0: "shown", 1: "dropped by the packer", 5: "cut by K", 55: "ranked too low", 58: "not in the pool",
        59: "never written"}
    assert DEEP == 50


def test_what_the_readers_window_had_no_room_for_is_dropped(make_world) -> None:
    made = world(make_world)
    answers = frame("answers", {"question": [0, 1], "sample": [0, 0], "dropped": [0, 1]})
    found = evidence_steps(made.updated({"answers": answers}))
    assert [STEPS[s] for s in found.filter(pl.col("question") == 1)["step"]] == ["dropped by the packer"]
    assert found.filter(pl.col("question") == 0).equals(evidence_steps(made).filter(pl.col("question") == 0))


def test_any_is_the_best_piece_and_all_the_worst(make_world) -> None:
    found = evidence_steps(world(make_world))
    assert dict(last_steps(found, "any").iter_rows()) == {0: "shown", 1: "shown"}
    assert dict(last_steps(found, "all").iter_rows()) == {0: "never written", 1: "shown"}
