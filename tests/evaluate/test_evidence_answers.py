"""Answers as rows of figures, and as the files that other tools read."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from memlab.evaluate.evidence import answer_metrics, judge_columns
from memlab.evaluate.export import write_answers
from memlab.evaluate.summary import averages, per_question, summary
from memlab.tables import Tables, frame, text_hash, texts_frame

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
