"""Query decomposition: sub-queries for the parts of a question, by rules or by a chat model.

The rules are cautious. They split a choice ("which first, A or B?"), "between A and B", "since A when B", "A before B
did C", a comparison ("compared to", "than"), two counted nouns ("how many A and B did"), a list that is counted or
summed, and two names ("do Ann and Bob"). A part consists of the question's own words; one with too few of them is not
split off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.models.chat.replies import parse_json
from memlab.models.protocols import Chat, Message, Prompt
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, Notes, Tables, add_texts, with_text
from memlab.pipeline.transcript import NOTE, fence_data
from memlab.stages.query.classify import Rules
from memlab.store import Store
from memlab.support.text.display import printable_line

Share = Annotated[float, Field(gt=0, le=1)]
"""The weight of all sub-queries of a question together; the question has weight 1."""


class QueryAdder:
    """Base of the stages that add queries."""

    reads: ClassVar = ("queries", "texts")
    writes: ClassVar = ("queries", "texts")


@stage
class RuleDecompose(QueryAdder):
    """Add a query for each part that rules find in a question.

    ``repeat`` is a control that adds the question itself in place of each part. A question with several queries is
    ranked by fused ranks, one with a single query by scores (``rank/score``); the control shows the effect of that.
    """

    share: Share = 1.0
    repeat: bool = False  # true: the control

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries and their sub-queries."""
        texts = query_texts(tables)
        parts = [parts_of(text) for text in texts]
        if self.repeat:
            parts = [[text] * len(own) for text, own in zip(texts, parts)]
        return add_parts(tables, parts, self.share)


def query_texts(tables: Tables) -> list[str]:
    """Return the texts of the queries, in their order."""
    return with_text(tables["queries"], tables["texts"])["text"].fill_null("").to_list()


def add_parts(tables: Tables, parts: Sequence[Sequence[str]], share: float) -> Tables:
    """Add sub-queries (kind "sub"): ``parts`` has those of each query, which divide ``share`` of its weight."""
    return add_queries(tables, parts, [share / max(len(own), 1) for own in parts], "sub")


def add_queries(tables: Tables, added: Sequence[Sequence[str]], factors: Sequence[float], kind: str) -> Tables:
    """Add queries of a kind behind all others: the texts ``added`` for each query, with its weight times its factor."""
    queries = tables["queries"]
    rows = [(question, weight * factor, text)
            for question, weight, texts, factor in
            zip(queries["question"], queries["weight"].fill_null(1.0), added, factors) for text in texts]
    if not rows:
        return Tables(queries=queries, texts=tables["texts"])
    first = max(queries["query"]) + 1
    subs = pl.DataFrame(rows, schema={"question": pl.Int32, "weight": pl.Float64, "text": pl.String}, orient="row")
    ids, texts = add_texts(tables["texts"], subs["text"])
    subs = subs.with_columns(
        ids, pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("query"), pl.lit(kind).alias("kind"),
        pl.lit(None, SCHEMAS["queries"]["window"]).alias("window")).select(list(SCHEMAS["queries"]))
    return Tables(queries=pl.concat([queries, subs]), texts=texts)


MOST = 4
"""Most parts per question."""

LONGEST = 1000
"""Characters of the longest question that is split; the time of some rules grows with the square of the length."""

_AUX = r"(?:did|do|does|have|has|had|is|are|was|were|will|would|can|could|am)"
_EMPTY = frozenset(re.findall(r"\w+", """
    a an the i me my we us our you your he him his she her it its they them their this that these those of to in on at
    for from with by about and or not no did do does have has had is are was were be been am will would can could what
    which who whom whose when where why how many much more most first last day days week weeks month months year years
    time times date now today before after since between one two other ones each both total so far then currently
    current previous previously go get got get started start"""))
_WORD = re.compile(r"[\w'’-]+")
_MASK = re.compile(r"\btitle(\d+)\b")
_QUOTED = re.compile(r"\btitle\d+\b|(?<!\w)(?:'[^']+(?:'\w[^']*)*'|\"[^\"]+\"|“[^”]+”|‘[^’]+’)(?!\w)")
_THE_DAY = re.compile(r"(?:the|my|our)? ?(?:day|date|time|moment|week)\b(?: (?:that|when|on which))? ",
                      re.IGNORECASE)
_MEASURED = re.compile(r"\b(?:how (?:much|many|long)|total|number of|amount|average|sum|percentage|including)\b",
                       re.IGNORECASE)

_CHOICE = re.compile(r"^(?:which|who|what|did|was|were|is|do|does)\b.*?[,:] ?(?P<a>[^,:]+?),? or (?P<b>[^,]+)$",
                     re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween (?P<rest>.+)$", re.IGNORECASE)
_CLAUSES = tuple(re.compile(p, re.IGNORECASE) for p in (
    r"\bsince (?P<a>.+?) when (?P<b>.+)$",
    r"^how long had (?P<a>.+?) when (?P<b>.+)$",
    r"^how (?:many \w+|long|much \w+) (?:before|after) (?P<a>.+?) (?:did|do|does) (?P<b>.+)$",
    r"^(?P<a>.+?) (?:before|after) (?P<b>(?:\w+ing|i|we|he|she|they) .+)$",
    r"^(?P<a>.+?),? (?:compared (?:to|with)|(?<!other )(?<!rather )than) (?P<b>.+)$",
))
_NOUN = rf"(?:(?!\b{_AUX}\b)[\w'’ -])+?"
_COUNTED = re.compile(rf"^(?P<head>how many(?: (?:different|total|new))?) (?P<a>{_NOUN}) (?:and|or) (?P<b>{_NOUN}) "
                      rf"(?P<rest>{_AUX} .+)$", re.IGNORECASE)
_LISTED = re.compile(r"^(?P<head>.+\b(?:including|on|for|of|in|from|at|to|with|finish|read|watch|visit)) "
                     r"(?P<a>[^?]+?),? and (?P<b>[^?]+?)(?: (?:combined|altogether|in total|together))?$",
                     re.IGNORECASE)
_NAMED = re.compile(rf"^(?P<head>.*\b(?i:{_AUX}) )(?:both )?(?P<a>[A-Z][a-z]+) and (?P<b>[A-Z][a-z]+) (?:both )?"
                    r"(?P<rest>[a-z].+)$")

Split = Callable[[str, str], list[str]]


def parts_of(question: str) -> list[str]:
    """Return the parts of a question; empty if the rules find no parts that can be searched for by themselves.

    >>> parts_of("Which event happened first, the road trip to the coast or the arrival of the new lens?")
    ['the road trip to the coast', 'the arrival of the new lens']
    >>> parts_of("How much did I spend on car wash and parking ticket?")
    ['How much did I spend on car wash', 'How much did I spend on parking ticket']
    >>> parts_of("Where did I buy bread and milk?")
    []
    """
    kind = Rules.classify(question)[0]
    if kind in ("preference", "assistant"):  # often long stories, whose "and" separates no parts
        return []
    if len(question) > LONGEST:
        return []
    masked, titles = _mask_titles(" ".join(question.split()).rstrip("?!. "))
    for split in _SPLITS:
        parts = list(dict.fromkeys(part.strip(" ,.;:") for part in split(masked, kind)))
        if len(parts) > 1 and all(map(_has_content, parts)):
            return [_MASK.sub(lambda m: titles[int(m[1])], part) for part in parts[:MOST]]
    return []


def _mask_titles(text: str) -> tuple[str, list[str]]:
    """Return the text with a placeholder for each quoted title, so that no rule looks inside, and the titles.

    What looks like a placeholder gets one too.
    """
    titles = _QUOTED.findall(text)
    numbers = iter(range(len(titles)))
    return _QUOTED.sub(lambda _: f"title{next(numbers)}", text), titles


def _has_content(part: str, least: int = 1) -> bool:
    """Return whether a part has at least ``least`` words that carry meaning."""
    return sum(w.lower() not in _EMPTY for w in _WORD.findall(part)) >= least


def _choice(question: str, kind: str) -> list[str]:  # noqa: ARG001 (all splits have one signature)
    match = _CHOICE.search(question)
    return [match["a"], match["b"]] if match else []


def _between(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _BETWEEN.search(question)
    if not match:
        return []
    rest = match["rest"]
    ands = [m.span() for m in re.finditer(r",? and ", rest)]
    marked = [span for span in ands if _THE_DAY.match(rest, span[1])]
    if _THE_DAY.match(rest) and marked:
        ands = marked[:1]
    if len(ands) != 1:
        return []
    a, b = (_THE_DAY.sub("", part, count=1) if _THE_DAY.match(part) else part
            for part in (rest[: ands[0][0]], rest[ands[0][1]:]))
    if not _has_content(b, 2):  # "between Ann adopting Rex and Bo"
        b = f"{a.rpartition(' ')[0]} {b}"
    return [a, b] if _has_content(a, 2) else []


def _clauses(question: str, kind: str) -> list[str]:
    if kind not in ("temporal", "counting") and not _MEASURED.search(question) and "compared" not in question:
        return []
    for pattern in _CLAUSES:
        match = pattern.search(question)
        if match and _has_content(match["a"], 2) and _has_content(match["b"], 2):
            return [match["a"], match["b"]]
    return []


def _count(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _COUNTED.search(question)
    return [f"{match['head']} {match[side]} {match['rest']}" for side in "ab"] if match else []


def _list(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _LISTED.search(question)
    if not match or not _MEASURED.search(question):
        return []
    head = match["head"]
    items = [*re.split(r", ?", match["a"]), match["b"]]
    verbs = rf"\b(?:{_AUX}|and|or|when|if|while)\b"
    clause = rf"^(?:{_AUX}|then|how|what|when|it|i|we|they|he|she|receive|get|buy|go)\b"
    if any(re.search(verbs, item, re.IGNORECASE) for item in items[:-1]) or re.search(clause, items[-1], re.IGNORECASE):
        return []
    preposition = head.rsplit(" ", 1)[-1]
    items = [re.sub(rf"^{preposition} ", "", item, flags=re.IGNORECASE) for item in items]
    return [f"{head} {item}" for item in items] if all(_has_content(item) for item in items) else []


def _names(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _NAMED.search(question)
    if not match or "together" in question.lower():  # one memory tells what two people did together
        return []
    return [f"{match['head']}{match[side]} {match['rest']}" for side in "ab"]


_SPLITS: tuple[Split, ...] = (_choice, _between, _clauses, _count, _list, _names)


INSTRUCTION = """You prepare searches in a person's past conversations. You are given one question. If its \
answer has to be put together from several separate facts (things compared, two events between which time \
passed, items to be counted or summed), write one short search phrase for each of them, {most} at most; for a \
count, one for each kind of item that the question names. A phrase must be understood without the question and \
name what the question names. If one fact answers the question, reply with an empty list. Reply as JSON: \
{{"queries": ["...", "..."]}}."""

_LIST = {"type": "array", "items": {"type": "string"}}
SCHEMA = json.dumps({"type": "object", "properties": {"queries": _LIST}, "required": ["queries"],
                     "additionalProperties": False})


def ask_for_queries(store: Store, chat: Chat, system: str, questions: Sequence[str], max_tokens: int, notes: Notes,
                    failure: str) -> dict[str, list[str]]:
    """Return the queries that a chat model writes for each question; unreadable replies are counted as ``failure``."""
    prompts = [Prompt((Message("system", f"{system}\n{NOTE}"), Message("user", fence_data({"QUESTION": text}))),
                      schema=SCHEMA, max_tokens=max_tokens) for text in questions]
    replies = [parse_json(reply, SCHEMA) for reply in store.completions(chat, prompts, notes)]
    notes.warn(replies.count(None), len(questions), failure)
    return {text: reply["queries"] for text, reply in zip(questions, replies) if reply is not None}


@stage
class LLMDecompose(QueryAdder):
    """Add the search phrases that a chat model writes for a question, at most ``most``.

    A single phrase, or the question itself, adds nothing. So does an unreadable reply, which is counted.
    """

    chat: Chat
    share: Share = 1.0
    most: Annotated[int, Field(ge=2)] = 4  # more parts than that are drift
    max_tokens: Annotated[int, Field(ge=1)] = 192  # per reply: four phrases in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries and their sub-queries; warn of replies that could not be read."""
        notes, texts = Notes(), query_texts(tables)
        phrases = ask_for_queries(
            store, self.chat, INSTRUCTION.format(most=self.most), list(dict.fromkeys(texts)), self.max_tokens, notes,
            "decompositions could not be read; those questions are searched as a whole")
        parts = [self._parts(text, phrases.get(text, [])) for text in texts]
        return add_parts(tables, parts, self.share).updated({"notes": notes.table()})

    def _parts(self, question: str, phrases: list[str]) -> list[str]:
        distinct = dict.fromkeys(map(printable_line, phrases))
        parts = [p for p in distinct if p and p.casefold() != question.casefold()][: self.most]
        return parts if len(parts) > 1 else []
