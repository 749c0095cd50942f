"""The marks that reasoning models put around what they think before a reply."""

from __future__ import annotations

import re

_NAME = r"[\w:.-]{0,20}?(?:think(?:ing)?|thoughts?|reasoning)"

_MARKS = {  # name -> the mark before the thinking, and the one behind it
    # <think>, [THINK], \u25c1think\u25b7 (Kimi), <seed:think>, <M2_7think>, <|begin_of_thought|>, <|START_THINKING|>
    "tags": (rf"[<\[\u25c1]\|?(?:begin_of_|start_)?{_NAME}(?:\s\w+=[^<>\]]{{0,100}})?\|?[>\]\u25b7]",
             rf"[<\[\u25c1]\|?(?:/|end_of_|end_){_NAME}\|?[>\]\u25b7]"),
    "harmony": (r"(?:<\|start\|>assistant)?(?=<\|channel\|>)", r"<\|channel\|>final\b.{0,40}?<\|message\|>"),
    # a server that drops Harmony's marks leaves the words between them
    "plain_harmony": (r"analysis(?=\S)(?=(?s:.*)assistantfinal)", r"assistantfinal"),
    "gemma": (r"<\|channel>thought\b", r"<channel\|>"),
    "apertus": (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    "granite": (r"here is my thought process:", r"here is my response:"),
}
_OPENING = re.compile(r"\s*(?:" + "|".join(f"(?P<{name}>{mark})" for name, (mark, _) in _MARKS.items()) + ")",
                      re.IGNORECASE)
_CLOSING = {name: re.compile(mark, re.IGNORECASE) for name, (_, mark) in _MARKS.items()}

_TOKENS = ("tags", "harmony", "gemma", "apertus")  # marks that nobody writes for their meaning
_CLOSINGS = "|".join(_MARKS[name][1] for name in _TOKENS)
_ANY = re.compile("|".join(mark for name in _TOKENS for mark in _MARKS[name]), re.IGNORECASE)
_ONLY_CLOSING = re.compile(rf"(?<![ \t`\"'(])(?:{_CLOSINGS})|(?:{_CLOSINGS})(?![ \t`\"').,;:])", re.IGNORECASE)
"""A closing mark at the edge of a line or a word; one between blanks or quotes is a word of the reply."""

_SHELL = re.compile(r"\A(?:<(?:answer|response|output|solution)>|<\|(?:begin_of_solution|start_response)\|>)|"
                    r"(?:</(?:answer|response|output|solution)>|<\|(?:end_of_solution|end_response|return|end)\|>)\s*\Z",
                    re.IGNORECASE)
"""Marks around a reply that follows thinking."""


def without_thinking(text: str) -> str:
    """Return a reply without the thinking before it; "" while the thinking has no end.

    >>> without_thinking("<|channel|>analysis<|message|>yes?<|end|><|start|>assistant<|channel|>final<|message|>no")
    'no'
    >>> without_thinking("so yes</think>no"), without_thinking("Write </think> at the end")
    ('no', 'Write </think> at the end')
    """
    start = 0
    while opening := _OPENING.match(text, start):
        end = _CLOSING[str(opening.lastgroup)].search(text, opening.end())
        start = end.end() if end else len(text)
    if not start and (end := _ONLY_CLOSING.search(text)):  # some chat templates write the opening mark themselves
        start = end.end()
    return _SHELL.sub("", text[start:].lstrip()) if start else text


def marks_thinking(text: str) -> bool:
    """Return whether a text holds a mark of thinking.

    >>> marks_thinking("yes </think> no"), marks_thinking("I think so")
    (True, False)
    """
    return _ANY.search(text) is not None
