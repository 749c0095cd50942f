"""Outdated answers: the earlier value of a knowledge-update question, where its evidence turns state it."""

from __future__ import annotations

import re

import polars as pl

from memlab.tables import Tables, with_text
from memlab.text.normalise import answer_tokens, locomo_stems

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DOLLARS = re.compile(r"\$(\d[\d,]*\d|\d)")
_REACH = 3  # the unit of a number is one of this many words after it
_STOP = frozenset(locomo_stems(
    "of do does did have has i my me in on for with now so far total currently how many much"))


def outdated_values(tables: Tables) -> dict[int, str]:
    """Return the earlier value for each question that has exactly one candidate.

    Only counts and amounts are considered. A candidate is a number in the evidence turns of an earlier session. It has
    the unit of the gold answer (the word after its number, the word after "How many" in the question, or the sign $),
    differs from the gold answer and does not occur in the latest session. Needs questions, gold, evidence, turns and
    texts.
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
        evidence = turns.filter(pl.col("question") == question)
        if answer is None or evidence["session"].n_unique() < 2:
            continue
        latest = evidence["session"].max()
        old = evidence.filter(pl.col("session") < latest)["text"].to_list()
        new = evidence.filter(pl.col("session") == latest)["text"].to_list()
        value = _earlier_value(texts[question], answer, old, new)
        if value is not None:
            values[question] = value
    return values


def _earlier_value(question: str, answer: str, old: list[str], new: list[str]) -> str | None:
    numbers = [word for word in answer_tokens(answer) if _NUMBER.fullmatch(word)]
    if len(numbers) != 1:
        return None
    if "$" in answer:
        values = _dollars(old) - set(numbers) - _dollars(new)
        return f"${int(values.pop()):,}" if len(values) == 1 else None
    units = _units(answer) or _units(question.partition("ow many")[2][:60])
    values = _numbers_with_unit(old, units) - set(numbers) - _numbers_with_unit(new, units)
    if len(values) != 1:
        return None
    rest = " ".join(word for word in answer.split() if not any(n in answer_tokens(word) for n in numbers))
    return f"{values.pop()} {rest}".strip()


def _dollars(texts: list[str]) -> set[str]:
    return {amount.replace(",", "") for text in texts for amount in _DOLLARS.findall(text)}


def _units(text: str) -> set[str]:
    """Return the first two words that can name a unit."""
    words = [w for w in locomo_stems(text) if not w.isdigit() and w not in _STOP
             and answer_tokens(w) and not answer_tokens(w)[0].isdigit()]
    return set(words[:2])


def _numbers_with_unit(texts: list[str], units: set[str]) -> set[str]:
    """Return the numbers that one of the units follows closely."""
    numbers = set()
    for text in texts:
        words = answer_tokens(text)
        for at, word in enumerate(words):
            if _NUMBER.fullmatch(word) and units & set(locomo_stems(" ".join(words[at + 1:at + 1 + _REACH]))):
                numbers.add(word)
    return numbers
