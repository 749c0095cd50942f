"""Outdated answers: the earlier value of a knowledge-update question, where its evidence turns state it."""

from __future__ import annotations

import re

import polars as pl

from memlab.tables import Tables, with_text
from memlab.text.normalise import answer_tokens, locomo_stems

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_REACH = 3  # a number's unit is among this many words after it
_STOP = frozenset(locomo_stems(
    "of do does did have has i my me in on for with now so far total currently how many much"))


def outdated_values(tables: Tables) -> dict[int, str]:
    """Return the earlier value for each question that has exactly one candidate.

    Only counts and amounts: in the evidence turns of all sessions but the latest, a number of the same unit as the
    gold answer's (the word behind it, or behind "How many" in the question; for "$" the sign) that is not the gold
    one and does not occur in the latest session. Needs questions, gold, evidence, turns and texts.
    """
    wanted = tables["gold"].filter((pl.col("category") == "knowledge-update") & ~pl.col("abstain"))
    turns = (
        tables["evidence"].filter(pl.col("question").is_in(wanted["question"].implode()))
        .join(tables["questions"].select("question", "corpus"), on="question")
        .join(with_text(tables["turns"], tables["texts"]), on=["corpus", "session", "turn"])
        .sort("question", "session", "turn")
    )
    texts = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
    values = {}
    for question, answer in wanted.select("question", "answer").sort("question").iter_rows():
        mine = turns.filter(pl.col("question") == question)
        if answer is None or mine["session"].n_unique() < 2:
            continue
        latest = mine["session"].max()
        old = mine.filter(pl.col("session") < latest)["text"].to_list()
        new = mine.filter(pl.col("session") == latest)["text"].to_list()
        value = _earlier(texts[question], answer, old, new)
        if value is not None:
            values[question] = value
    return values


def _earlier(question: str, answer: str, old: list[str], new: list[str]) -> str | None:
    numbers = [word for word in answer_tokens(answer) if _NUMBER.fullmatch(word)]
    if len(numbers) != 1:
        return None
    if "$" in answer:
        before = {m.replace(",", "") for text in old for m in re.findall(r"\$(\d[\d,]*\d|\d)", text)}
        values = before - set(numbers) - {m.replace(",", "") for t in new for m in re.findall(r"\$(\d[\d,]*\d|\d)", t)}
        return f"${int(values.pop()):,}" if len(values) == 1 else None
    units = _units(answer) or _units(question.partition("ow many")[2][:60])
    values = _counted(old, units) - set(numbers) - _counted(new, units)
    if len(values) != 1:
        return None
    rest = " ".join(word for word in answer.split() if not any(n in answer_tokens(word) for n in numbers))
    return f"{values.pop()} {rest}".strip()


def _units(text: str) -> set[str]:
    """Return the first words after a count that can name its unit."""
    words = [w for w in locomo_stems(text) if not w.isdigit() and w not in _STOP
             and answer_tokens(w) and not answer_tokens(w)[0].isdigit()]
    return set(words[:2])


def _counted(texts: list[str], units: set[str]) -> set[str]:
    """Return the numbers that one of the units follows closely."""
    numbers = set()
    for text in texts:
        words = answer_tokens(text)
        for at, word in enumerate(words):
            if _NUMBER.fullmatch(word) and units & set(locomo_stems(" ".join(words[at + 1:at + 1 + _REACH]))):
                numbers.add(word)
    return numbers
