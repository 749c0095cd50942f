"""Thinking is taken off replies in the forms that models write it in."""

from __future__ import annotations

import time

import pytest

from memlab.models.protocols import Completion
from memlab.models.thinking import marks_thinking

FORMS = {
    "qwen": "<think>\nyes\n</think>\n\nno",
    "attribute": '<think type="x">yes</think>no',
    "opened by the template": "yes perhaps</think>\n\nno",
    "opened by the template, in a line": "yes perhaps</think>no",
    "no bracket": "<think yes it is\n</think>no",
    "magistral": "[THINK]yes[/THINK]no",
    "kimi": "\u25c1think\u25b7 maybe yes \u25c1/think\u25b7 no",
    "seed": "<seed:think>yes</seed:think>no",
    "minimax": "<mm:think>yes?</mm:think>no",
    "prefixed": "<M2_7think>yes?</M2_7think>no",
    "openthinker": "<|begin_of_thought|>yes<|end_of_thought|><|begin_of_solution|>no<|end_of_solution|>",
    "command": "<|START_THINKING|>yes<|END_THINKING|><|START_RESPONSE|>no<|END_RESPONSE|>",
    "with an answer tag": "<think>yes</think>\n<answer>\nno\n</answer>",
    "harmony": "<|channel|>analysis<|message|>Is it right? yes.<|end|><|start|>assistant<|channel|>final<|message|>no",
    "harmony with a tool":
        "<|channel|>analysis<|message|>yes<|end|><|start|>assistant<|channel|>commentary to=f<|message|>yes<|end|>"
        "<|start|>assistant<|channel|>final <|constrain|>json<|message|>no<|return|>",
    "harmony, the answer alone": "<|start|>assistant<|channel|>final<|message|>no<|return|>",
    "harmony without marks": "analysisThe reference says yes.assistantfinalno",
    "gemma": "<|channel>thought\nyes<channel|>no",
    "gemma, opened by the template": "yes<channel|>no",
    "apertus": "<|inner_prefix|>yes<|inner_suffix|>no",
    "granite": "Here is my thought process:\nyes\n\nHere is my response:\nno",
    "twice": "<think>yes</think>\n<think>yes</think>\nno",
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_what_follows_the_thinking(form: str) -> None:
    assert Completion(FORMS[form], 0, 0, 0.0).answer.strip() == "no"


@pytest.mark.parametrize("text", ["<think>yes", "\u25c1think\u25b7yes", "<|channel|>analysis<|message|>yes<|end|>",
                                  "<|channel>thought\nyes", "<|begin_of_thought|>yes", "<mm:think>yes"])
def test_thinking_without_end_is_no_answer(text: str) -> None:
    assert Completion(text, 0, 0, 0.0).answer == ""
    assert Completion(text, 0, 0, 0.0).fault == "are empty"


@pytest.mark.parametrize("text", ["no", "", "Close it with </think> or not at all", "Write `</think>`.", "I think: no",
                                  "analysis of the answer: no", "[Thoughtful] no", "[think about it] no", "<answer>no",
                                  "The channel| is final"])
def test_what_is_no_thinking_stays(text: str) -> None:
    assert Completion(text, 0, 0, 0.0).answer == text
    assert marks_thinking(text) == ("</think>" in text)


@pytest.mark.parametrize("text", ["<think></think>", "<think>", "<think>a</think>\n", "analysisA", "<|channel|>",
                                  "analysisAassistantfinal", "<|channel|>final<|message|>", "<" + "think" * 9,
                                  " </think> ", "\n"])
def test_any_marks_are_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    answer = Completion(text * 50_000 + "yes", 0, 0, 0.0).answer
    marks_thinking(answer)
    assert time.process_time() - start < 2
