"""Statements of a team about things: dates, owners, prices and decisions, as questions. English only.

"The launch moved to 12 May" is asked about as "When is the launch?". A date that is moved, or a price that is raised,
gives the same question as the one before it, so that ``memlab.data.questions.propose`` can take the latest.

A clause must be understood to its end, and what it is about must be named: "the deadline for quotes", not "it" or "the
meeting". Questions, conditions, doubts and negations give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlab.data.questions.rules import CLOCK, MONEY, MONTH, NOUNS, UNIT, VAGUE, WEEKDAY, words

LABEL = re.compile(
    r"\s*(?:[*_]*(?:update|news|decision|decided|reminder|note|fyi|psa|tl;?dr|heads up|correction|final|recap|summary|"
    r"status|action item|announcement)[*_]*: *)+", re.IGNORECASE)
"""The label of a line, after which the statement stands."""

_ONE = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?|\d{{4}}-\d\d-\d\d|Q[1-4])"
_DAY = rf"(?:(?:{WEEKDAY},? )?(?:the )?{_ONE}(?:,? (?:19|20)\d\d)?|(?:early |late |mid-?)?{MONTH} (?:19|20)\d\d)"
_WHEN = (rf"(?:(?:on|in|by|until|from) )?(?P<answer>{_DAY}(?:,? {CLOCK})?(?: (?:until|to) {_DAY})?|"
         rf"in (?:early |late )?{MONTH})")
_AT = r"(?P<answer>(?:\d{1,2}:\d\d|\d{1,2} ?(?:am|pm|AM|PM)\b)(?: (?:UTC|CET|CEST|GMT|ET|PT))?)"
_MORE = rf"(?: (?:with|for|to|of|about) (?:the |our )?{NOUNS})?"
_THING = rf"(?P<x>(?:the |our |(?=[A-Z])){NOUNS}{_MORE})"
_TOPIC = rf"(?P<x>(?!(?:an?|my|all|most|some|any|every|no) )(?:the |our )?{NOUNS}{_MORE})"
_OVER = rf"(?: (?:instead of|over|rather than) {NOUNS})?"
_PRICE = rf"(?P<answer>{MONEY}(?: (?:per|a|an|each) (?:{UNIT}|seat|user|person|head|licen[cs]e)|/\w+)?)"
_OWNER = r"@?(?P<answer>[A-Z][\w'-]{1,24}(?: [A-Z][\w'-]{1,24}){0,2})"
_NOW = "(?:now |still |currently |already )?"
_BE = f"(?:is|are) {_NOW}"
_WE = "(?:we|the team)(?:'ve| have)? (?:just |finally |all )?"
_MOVED = "(?:moved|postponed|pushed back|pushed|delayed|rescheduled|shifted|brought forward)"
_ENDS = (r"(?:$|,? (?:and|because|due to|since|so|now|instead|again|from now on|on top|already|as|after|at [A-Z]|"
         r"in [A-Z]|but|everyone|all|folks|guys|please|for now|then)\b)")


class TeamRule(NamedTuple):
    """A form of a clause: the kind of fact, its pattern with the groups ``answer`` and ``x``, and its question."""

    kind: str
    pattern: re.Pattern[str]
    question: str


_RULES = tuple(TeamRule(kind, re.compile(f"{pattern}(?={_ENDS})"), question) for kind, pattern, question in (
    ("deadline", rf"{_THING} {_BE}due {_WHEN}", "When {be} {x} due?"),
    ("deadline", rf"{_THING} {_BE}(?:(?:planned|scheduled|set|booked|fixed) )?(?:for )?{_WHEN}", "When {be} {x}?"),
    ("deadline", rf"{_THING} (?:(?:was|were|has been|have been|is|are|got) )?{_NOW}{_MOVED} to {_WHEN}",
     "When {be} {x}?"),
    ("deadline", rf"{_THING} {_BE}(?:{_MOVED} to )?(?:at )?{_AT}", "When {be} {x}?"),
    ("deadline", rf"{_THING} {_BE}(?P<verb>closed|frozen|open|live|available) {_WHEN}", "When {be} {x} {verb}?"),
    ("deadline", rf"{_THING} (?P<verb>starts|begins|ends|closes|opens|expires|ships|launches|goes live|goes out|runs "
                 rf"out) {_WHEN}", "When {does} {x} {verb}?"),
    ("deadline", rf"I(?:'m| am|'ll be| will be) (?P<verb>on vacation|on holiday|on leave|out of office|away) "
                 rf"{_WHEN}(?P<x>)", "When is {me} {verb}?"),
    ("owner", rf"{_OWNER} {_NOW}(?P<verb>owns|leads|manages|maintains|coordinates) {_TOPIC}",
     "Who {verb} {x}?"),
    ("owner", rf"{_OWNER} (?:is|will be) {_NOW}(?P<verb>responsible for|in charge of|on call for|taking care of|"
              rf"the owner of|the lead for|the contact for) {_TOPIC}", "Who is {verb} {x}?"),
    ("owner", rf"(?:the|our) (?P<verb>owner|lead|contact|maintainer) (?P<on>of|for) {_TOPIC} is {_NOW}{_OWNER}",
     "Who is the {verb} {on} {x}?"),
    ("owner", rf"{_TOPIC} is {_NOW}owned by {_OWNER}", "Who owns {x}?"),
    ("owner", rf"{_OWNER} (?:covers|is covering) for me(?P<x>)", "Who covers for {me}?"),
    ("mine", rf"(?P<answer>I) {_NOW}(?P<verb>own|lead|manage|maintain|coordinate) {_TOPIC}", "Who {verb}s {x}?"),
    ("mine", rf"(?P<answer>I)(?:'m| am) {_NOW}(?P<verb>responsible for|in charge of|on call for) {_TOPIC}",
     "Who is {verb} {x}?"),
    ("price", rf"the (?:price|cost) (?:of|for) {_TOPIC} (?:is|goes up to|goes down to|rises to|drops to|increases to|"
              rf"went up to|was raised to|was lowered to) {_NOW}{_PRICE}(?: {_WHEN.replace('answer', 'on')})?",
     "How much {does} {x} cost?"),
    ("price", rf"{_THING} {_NOW}costs? (?:us )?{_PRICE}", "How much {does} {x} cost?"),
    ("price", rf"{_THING} would cost (?:us )?{_PRICE}", "How much would {x} cost?"),
    ("price", rf"(?!(?i:my|your|his|her|their|its|this) )(?P<x>(?:the |our )?(?:[\w-]+ ){{0,2}}"
              rf"(?i:budget|rent|fee|salary|invoice|bill){_MORE}) {_BE}{_PRICE}",
     "How much is {x}?"),
    ("decision", rf"{_WE}(?:decided|agreed) to (?P<verb>use|adopt|buy|take|keep|hire|go with|switch to|move to|migrate "
                 rf"to) (?P<answer>{NOUNS})(?P<x>{_OVER}(?: for (?:the |our )?{NOUNS})?)",
     "What did we decide to {verb}{x}?"),
    ("decision", rf"{_WE}(?P<verb>chose|picked|selected) (?P<answer>{NOUNS})(?P<x>{_OVER}(?: (?:for|as) (?:the |our )?"
                 rf"{NOUNS})?)", "What did we {verb}{x}?"),
    ("decision", rf"{_WE}(?:go|went|are going|will go|'ll go|'re going) with (?P<answer>{NOUNS})(?P<x>{_OVER}"
                 rf"(?: for (?:the |our )?{NOUNS})?)", "What do we go with{x}?"),
    ("decision", rf"{_WE}(?:agreed|decided|settled) on (?P<answer>{NOUNS})(?P<x> (?:for|as) (?:the |our )?{NOUNS})",
     "What did we agree on{x}?")))

_CLAUSE = re.compile(r",? +(?=(?:but|so|because|since|which|and) )|; +|, +(?!(?:19|20)\d\d\b|at \d)")
_LEAD = re.compile(
    r"(?:ok(?:ay)?|so|and|but|also|just|fyi|btw|by the way|please note(?: that)?|note that|reminder(?: that)?|sorry|"
    r"heads up|yes|no|yep|from (?:today|tomorrow|now on)(?: on)?|starting today|as of (?:today|now)|quick update|"
    r"good news|morning all|hi all|hey all|then|@[\w.-]+(?=,? (?:the|our|we|I)\b)),? +", re.IGNORECASE)
_DOUBTS = words("doubts")
_UNSURE = re.compile(rf"\b(?:{'|'.join(_DOUBTS)})\b|n't\b|\bwould (?!cost\b)|\?", re.IGNORECASE)
_NOBODY = frozenset(words("nobody"))
_COMMON = frozenset(words("common"))
"""What there are many of: by itself such a noun does not say which."""
_INFINITIVES = {"goes live": "go live", "goes out": "go out", "runs out": "run out", "chose": "choose",
                "picked": "pick", "selected": "select", "launches": "launch"}


def team_facts(sentence: str, speaker: str) -> Iterator[tuple[str, str, str]]:
    """Yield (question, answer, kind) for each clause of a sentence that a rule fits.

    >>> list(team_facts("Heads up: the launch moved to 12 May because of the audit.", "Ana"))
    [('When is the launch?', '12 May', 'deadline')]
    >>> list(team_facts("I own the landing page, Hugo is responsible for the press kit.", "Chloe"))
    [('Who owns the landing page?', 'Chloe', 'owner'), ('Who is responsible for the press kit?', 'Hugo', 'owner')]
    """
    if _UNSURE.search(sentence):
        return
    for clause in _CLAUSE.split(LABEL.sub("", sentence).rstrip("!. ")):
        for _ in range(3):
            if lead := _LEAD.match(clause):
                clause = clause[lead.end():]
        if clause.startswith(("The ", "We ", "We'", "Our ")):
            clause = clause[0].lower() + clause[1:]
        match, rule = next(((match, rule) for rule in _RULES if (match := rule.pattern.match(clause))), (None, None))
        if match and rule and (fact := _fact(rule, match, speaker)):
            yield fact


def _fact(rule: TeamRule, match: re.Match[str], speaker: str) -> tuple[str, str, str] | None:
    """Return the question, the answer and the kind of a match; None where it does not say what it is about."""
    parts = {name: value or "" for name, value in match.groupdict().items()}
    thing, answer, verb = parts["x"], parts["answer"], parts.get("verb", "")
    owned, whole = rule.kind in ("owner", "mine"), rule.kind == "decision" or not thing
    if rule.kind == "owner" and answer.split()[0] in _NOBODY or rule.kind == "decision" and not thing or not (
            whole or _is_specific(thing, owned)):
        return None
    many = bool(re.search(r"[^su]s$", re.split(" (?:for|of|with|to|about) ", thing)[0])) and not owned
    inflected = "{does}" in rule.question or " did " in rule.question
    question = rule.question.format(**parts | {
        "x": thing if whole or owned else _inside(thing, many), "me": speaker, "be": "are" if many else "is",
        "verb": _INFINITIVES.get(verb) or verb.removesuffix("s") if inflected else verb,
        "does": "do" if many else "does"})
    return question, speaker if rule.kind == "mine" else answer, "owner" if owned else rule.kind


def _is_specific(thing: str, owned: bool) -> bool:
    """Return whether a noun phrase says which thing is meant; what is owned may be one word: "billing"."""
    content = [word for word in re.findall(r"[\w'-]+", thing) if word.lower() not in VAGUE]
    if not content or content[0].partition("'")[0] in _NOBODY:
        return False
    return len(content) > 1 or content[0].lower() not in _COMMON and (owned or thing[0].isupper() or " " in thing)


def _inside(thing: str, many: bool) -> str:
    """Return a noun phrase, of one thing or ``many``, as a question has it.

    >>> _inside("Demo with Acme", False), _inside("Deploys", True), _inside("our goal", False)
    ('the demo with Acme', 'deploys', 'our goal')
    """
    first, _, rest = thing.partition(" ")
    common = first[:1].isupper() and first[1:].islower() and rest[:1].islower()
    if many and not rest:
        return thing.lower()
    return f"the {first.lower()} {rest}" if common else thing
