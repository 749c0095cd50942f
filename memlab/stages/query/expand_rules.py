"""Query expansion by rules: synonyms, usual phrasings, and the question as a statement.

"How long is my commute?" becomes "duration of commute", and "Where did I buy my bike?" becomes "I bought my bike".
MemoryStack prints the two phrases for a commute as its example of expansion by rule; the other forms are ours.

Statements are the form of most memories. Rules put the verb into its place and tense.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.stages.query.decompose import QueryAdder, add_queries, query_texts
from memlab.store import Store
from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE
from memlab.support.text.display import printable_line

WORDS: dict[str, dict[str, Any]] = read_yaml(PACKAGE / "stages" / "query" / "words.yaml")
"""Tables of words, which that file explains."""

_WHAT = r"(?:(?:my|our|the|your) )?(?P<what>[^?.!;\n]{1,80}?)"
_BE = r"(?:is|are|was|were)"
_DO = r"(?:do|does|did)"
_END = r"(?: usually| normally| currently| now| these days| each way| every day)*[?.! ]*$"
_HEAD = re.compile(r"[^ ]*(?= (?:to|from|in|at|on|with|of|for) |$)")  # "commute" of "daily commute to work"
_WORK = r"(?:work|the office|my office|my job)"

_FORMS = tuple((re.compile(rf"^{question}{_END}", re.IGNORECASE), phrases) for question, phrases in (
    (rf"how long {_BE} (?:it|the \w+|my \w+) (?P<what>)(?:to|from home to) {_WORK}",
     ("duration of commute", "travel time to work")),
    (rf"how long (?:{_DO}|would|will) it (?P<what>)take (?:me |us )?to (?:commute|(?:get|drive|go|travel|ride|cycle|"
     rf"walk) to {_WORK})", ("duration of commute", "travel time to work")),
    (rf"how long {_BE} {_WHAT}", ("duration of {what}", "{time}")),
    (rf"how long {_DO} {_WHAT} (?:take|last)", ("duration of {what}", "{time}")),
    (rf"how (?P<adjective>{'|'.join(WORDS['nouns'])}) {_BE} {_WHAT}", ("{noun} {what}",)),
    (rf"how much {_DO} {_WHAT} cost", ("price of {what}", "cost of {what}")),
    (rf"how much {_DO} (?:i|we) (?:pay|spend) (?:for|on) {_WHAT}", ("price of {what}", "cost of {what}")),
    (rf"how much {_BE} {_WHAT}", ("price of {what}", "amount of {what}")),
    (rf"how much {_DO} {_WHAT} weigh", ("weight of {what}",)),
    (rf"how often {_DO} (?:i|we) {_WHAT}", ("frequency of {what}",)),
    (rf"what {_BE} {_WHAT} called", ("name of {what}",)),
    (rf"when {_BE} {_WHAT} born", ("birthday of {what}", "date of birth of {what}")),
    (r"where do (?P<what>)i live", ("my home address", "place of residence")),
    (r"(?:where|who) do (?P<what>)i work(?: for| at)?", ("my employer", "place of work")),
    (r"what do (?P<what>)i do for (?:a living|work)", ("my job", "occupation")),
    (r"how much do (?P<what>)i (?:earn|make)", ("my salary", "income")),
))
"""Form of a question -> phrases; the first that fits counts."""


def phrasings(question: str) -> list[str]:
    """Return the noun phrases that stand for a question of a common form, or none.

    >>> phrasings("How long is my commute?"), phrasings("How old is my cat?"), phrasings("Who is Ann?")
    (['duration of commute', 'travel time to work'], ['age of cat'], [])
    """
    text = " ".join(question.split())
    for form, phrases in _FORMS:
        if match := form.match(text):
            what = match["what"]
            time = WORDS["times"].get(_HEAD.search(what.lower())[0], f"length of {what}")  # type: ignore[index]
            noun = WORDS["nouns"].get((match.groupdict().get("adjective") or "").lower(), "")
            return [phrase.format(what=what, time=time, noun=noun) for phrase in phrases]
    return []


_SUBJECT = (r"(?P<subject>(?:I|i|you|he|she|we|they|it)\b|(?:my|our|his|her|their|the|your) [\w'’-]+|"
            r"[A-Z][\w'’-]*(?: and (?:I|[A-Z][\w'’-]*))?)")
_STATEMENT_HEAD = r"^(?:(?:what|which|who|whom|where|when|why|how)\b(?: (?P<thing>[^,]*?))?? )?"
_DID = re.compile(rf"{_STATEMENT_HEAD}[Dd]id {_SUBJECT} (?P<verb>[a-z]+)\b(?P<rest>.*)$", re.IGNORECASE)
_STATEMENT_DO = re.compile(rf"{_STATEMENT_HEAD}(?:do|does) {_SUBJECT} (?P<verb>[a-z]+)\b(?P<rest>.*)$", re.IGNORECASE)
_AUX = re.compile(rf"{_STATEMENT_HEAD}(?P<aux>have|has|had|will|would|can|could|should|am) {_SUBJECT}(?P<rest> .+)$",
                  re.IGNORECASE)
_IS = re.compile(r"^(?:what|who|where|when|how \w+|how) (?P<is>is|are|was|were|am)\s+(?P<what>.+)$", re.IGNORECASE)
_MEASURE = re.compile(r"^(?:many|much|long|often|far|old|kinds? of|types? of|sorts? of)\b ?(?:different )?",
                      re.IGNORECASE)


def statement(question: str) -> str:
    """Return the question as a statement, or unchanged if no rule fits its form.

    >>> statement("Where did I buy my new bike?")
    'I bought my new bike'
    >>> statement("How many model kits have I built?")
    'I have built model kits'
    >>> statement("What is the name of my cat?"), statement("Tell me about Ann.")
    ('the name of my cat is', 'Tell me about Ann.')
    """
    text = " ".join(question.split()).rstrip("?!. ")
    if match := _DID.match(text):
        return _statement(match, past(match["verb"].lower()))
    if match := _STATEMENT_DO.match(text):
        return _statement(match, match["verb"])
    if match := _AUX.match(text):
        return " ".join([match["subject"], match["aux"].lower(), match["rest"].strip(), *_thing(match)])
    if match := _IS.match(text):
        return f"{match['what']} {match['is'].lower()}"
    return question


def _statement(match: re.Match[str], verb: str) -> str:
    """Put subject, verb, what was asked for ("which bike") and the rest in the order of a statement."""
    return " ".join([match["subject"], verb, *_thing(match), *match["rest"].split()])


def _thing(match: re.Match[str]) -> list[str]:
    return _MEASURE.sub("", match["thing"] or "").split()


def past(verb: str) -> str:
    """Return the simple past of a verb.

    >>> [past(v) for v in ("buy", "paint", "bake", "study", "stay")]
    ['bought', 'painted', 'baked', 'studied', 'stayed']
    """
    if verb in WORDS["past"]:
        return str(WORDS["past"][verb])
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + "ed"


SYNONYMS: dict[str, list[str]] = WORDS["synonyms"] | {
    written: [long] for short, long in WORDS["abbreviations"].items() for written in (short, short.upper())}
"""Word -> its synonyms, the closest first."""

_QUOTED = r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|“[^”]+”|‘[^’]+’)(?!\w)"


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a quoted title, which stays, or a word of the table in lower case (others are names)."""
    words = "|".join(sorted(SYNONYMS, key=len, reverse=True))
    return re.compile(rf"{_QUOTED}|(?<![\w'-])(?P<word>{words})(?![\w'-])")


def rewrites(question: str, most: int) -> list[str]:
    """Return at most ``most`` rewrites, all different: the ``phrasings`` of the question, then it with synonyms.

    The rewrites with synonyms have each word's first, then each word's second one, or its last.

    >>> rewrites("Which car did I buy after the concert?", 3)
    ['Which vehicle did I purchase after the gig?', 'Which automobile did I purchase after the show?']
    """
    synonyms = [SYNONYMS[m["word"]] for m in _pattern().finditer(question) if m["word"]]
    phrases = phrasings(question)[:most]
    rounds = min(most - len(phrases), max(map(len, synonyms), default=0))

    def replace(match: re.Match[str], nth: int) -> str:
        others = SYNONYMS.get(match["word"] or "")
        return others[min(nth, len(others) - 1)] if others else match[0]

    others = [_pattern().sub(lambda m, nth=nth: replace(m, nth), question) for nth in range(rounds)]  # type: ignore[misc]
    return [*phrases, *others]


def inject_synonyms(question: str) -> str:
    """Return the question, followed by the synonyms of its words if there are any.

    >>> inject_synonyms("Which car did I buy?")
    'Which car did I buy? vehicle automobile purchase'
    """
    more = [s for m in _pattern().finditer(question) if m["word"] for s in SYNONYMS[m["word"]]]
    return " ".join([question, *dict.fromkeys(more)])


Weight = Annotated[float, Field(gt=0, le=1)]
"""The weight of each further query; the question has weight 1."""

Most = Annotated[int, Field(ge=1)]


@stage
class RuleExpand(QueryAdder):
    """Add at most ``most`` paraphrases of a question by rules.

    With ``statement``, the first is the question as the statement that would answer it. Rewrites with synonyms follow,
    or with ``inject`` the question followed by all its synonyms.
    """

    most: Most = 2  # rewrites per question, at most; few words have a third synonym
    weight: Weight = 0.5  # two of them weigh as much as the question
    statement: bool = False
    inject: bool = False

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries and their paraphrases (kind "wording")."""
        return add_paraphrases(tables, self._paraphrases, self.weight, "wording")

    def _paraphrases(self, question: str) -> list[str]:
        statements = [statement(question)] if self.statement else []
        others = [inject_synonyms(question)] if self.inject else rewrites(question, self.most)
        return distinct(question, [*statements, *others], self.most)


def add_paraphrases(tables: Tables, paraphrase: Callable[[str], Sequence[str]], weight: float, kind: str) -> Tables:
    """Add paraphrases of each question's first query, not of sub-queries, each with ``weight`` times its weight."""
    first = tables["queries"]["question"].is_first_distinct()
    added = [paraphrase(text) if is_first else [] for text, is_first in zip(query_texts(tables), first)]
    return add_queries(tables, added, [weight] * len(added), kind)


def question_texts(tables: Tables) -> list[str]:
    """Return the distinct texts of the questions' first queries."""
    first = tables["queries"]["question"].is_first_distinct()
    return list(dict.fromkeys(text for text, is_first in zip(query_texts(tables), first) if is_first))


def distinct(question: str, phrases: Iterable[str], most: int) -> list[str]:
    """Return at most ``most`` phrases, each on one line, that differ from the question and from one another.

    >>> distinct("Who is Ann?", ["who is  Ann?", "Ann is", "", "ann is", "about Ann", "Ann"], 2)
    ['Ann is', 'about Ann']
    """
    kept = {question.casefold(): ""}
    for phrase in phrases:
        if line := printable_line(phrase):
            kept.setdefault(line.casefold(), line)
    return list(kept.values())[1 : most + 1]
