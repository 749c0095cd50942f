"""The tables of the rules that make questions from statements: words, and patterns with their questions. English only.

``HEADS`` say who does what, ``SEGMENTS`` what may follow (when, where, with whom, for how much), ``STATES`` are
statements of other forms, such as "my cat is called Tom", and ``NAMES`` are names in passing ("my sister Emma").
``memlab.data.questions.facts`` reads them. All repetitions are bounded, so the time is linear in the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE

_LISTS: dict[str, str] = read_yaml(PACKAGE / "data" / "questions" / "words.yaml")


def words(name: str) -> tuple[str, ...]:
    """Return the words of a list of ``words.yaml``."""
    return tuple(_LISTS[name].split())


BASE = dict(pair.split(":") for pair in words("verbs"))
"""The base form of each past form that is known."""


def _one_of(options: Iterable[str]) -> str:
    """Return a pattern of one of the words (``_`` is a space); longer ones first: "weekend" is no "week"."""
    return f"(?:{'|'.join(sorted(options, key=lambda word: (-len(word), word))).replace('_', ' ')})"


def _any(name: str) -> str:
    return _one_of(words(name))


BASES, PASTS = _one_of({*BASE.values()}), _one_of(BASE)

_NUMBER = r"(?:\d[\d,.]{0,12}(?:-\d{1,4})?|" + _any("amounts") + ")"
COUNT = (r"(?:\d[\d,]{0,9}(?![\d.:%-]|st|nd|rd|th|k)|" + _any("counts") + ")")
MONEY = (r"(?:(?:about|around|only|just|over|nearly|almost|roughly) ){0,2}"
         r"(?:[$€£]\d[\d,.]{0,12}|\d[\d,]{0,9} (?:dollars|euros|pounds|bucks))")

MONTH = (r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
          r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)")
WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_SEASON = "(?:spring|summer|fall|autumn|winter)"
UNIT = _any("units") + "s?"
_PART = "(?: (?:morning|afternoon|evening|night))?"
_DATE = (rf"(?:{MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,? (?:19|20)\d\d)?|"
         rf"(?:the )?\d{{1,2}}(?:st|nd|rd|th)(?: of {MONTH})?|(?:19|20)\d\d\b|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?|"
         rf"the {_SEASON}(?: of (?:19|20)\d\d)?|(?:early |late |mid-?){MONTH})")
FIXED = (rf"(?:(?:on|in|by|around|back in|at the end of|at the beginning of) (?:{WEEKDAY},? )?"
         rf"(?:early |late |mid-?)?{_DATE})")
"""A date that means the same weeks later, so that a question may hold it."""
RELATIVE = (
    rf"(?:today|yesterday{_PART}|tomorrow{_PART}|tonight|the other day|"
    rf"(?:earlier |later )?this (?:past )?(?:morning|afternoon|evening|weekend|week|month|year|{_SEASON}|{WEEKDAY}|"
    rf"{MONTH}){_PART}|(?:(?:early|late|earlier) )?(?:over |during )?(?:last|next|the past) (?:few )?(?:night|weekend|"
    rf"week|month|year|{_SEASON}|{WEEKDAY}|{MONTH}|Christmas|Thanksgiving)\b{_PART}|"
    rf"(?:(?:about|around|over|almost|just|nearly) ){{0,2}}{_NUMBER} (?:{UNIT}|{WEEKDAY}s?) ago|"
    rf"(?:on |this ){WEEKDAY}\b{_PART}|(?:over|on) the weekend|{WEEKDAY}{_PART}$|in {_NUMBER} {UNIT}$)")
CLOCK = (r"(?:(?:at|around|by) (?:around |about )?(?:\d{1,2}(?::\d\d)? ?(?:am|pm|AM|PM|a\.m|p\.m)\b\.?|\d{1,2}:\d\d|"
          r"noon|midnight|\d{1,2} o'clock)(?: (?:in the (?:morning|afternoon|evening)|sharp))?)")
OFTEN = (r"(?:(?:about |around )?(?:once|twice|(?:two|three|four|five|\d) times) (?:a|per|every) (?:day|week|month|"
         rf"year)|every (?:other |two |three |few )?(?:{WEEKDAY}|morning|{UNIT})s?{_PART}|"
         rf"(?:on )?{WEEKDAY}s(?: and {WEEKDAY}s)?{_PART})")
_TIME = rf"(?:{FIXED}|{RELATIVE}|{OFTEN}|{CLOCK})"
LENGTH = (r"(?:(?:about|around|over|almost|nearly|more than|at least|the past|the last|roughly|only|just) ){0,2}"
           rf"{_NUMBER} (?:and a half )?{UNIT}\b")

_PREPOSITIONS = words("prepositions")
_STOPS = words("stops")
_CUTS = words("cuts")
STOPPED = re.compile(rf"(?:{'|'.join(_STOPS)}|to)(?![\w'-])|$")
"""What may follow what was read of a clause; after anything else the clause was not understood."""
_QUOTED = r'"[^"]{1,80}"'
_WORD = (rf"(?:{_QUOTED}|(?!(?:{'|'.join(_PREPOSITIONS + _STOPS + _CUTS)})(?![\w'-])|{_TIME})"
         r"[\w$€£#&'+./%:-]{1,30})")
NOUNS = rf"{_WORD}(?: {_WORD}){{0,7}}(?: of {_WORD}(?: {_WORD}){{0,4}})?"
"""A noun phrase: words up to a preposition, a conjunction, a pronoun, a common verb or a time."""
_CAPITAL = r"[A-Z][\w'&.-]{0,24}"
_NAME = rf"(?:{_CAPITAL}(?:(?: (?:of|the|and|for|de|la)){{0,2}} {_CAPITAL}){{0,3}})"
TITLE = rf"(?:{_QUOTED}|{_NAME})"

_FAMILY = _any("family")
OTHERS = _any("others")
PETS = _any("pets")
_OF_KIN = "younger|older|little|big|elder|late|old|new|close|best|college|twin|good|great|work|next-door"
KIN = rf"(?:(?:{_OF_KIN}) ){{0,2}}(?:{_FAMILY}|{OTHERS})"
_SOMEONE = rf"my {KIN}(?:,? {_CAPITAL})?(?! {_CAPITAL})"
WHO = rf"(?:I|we|{_SOMEONE})\b"
_NAMED = rf"(?:,? {_CAPITAL},?)?"
_ADVERB = rf"""(?:{_any("adverbs")} ){{0,2}}"""
_PLACE = _any("places")
_LANGUAGE = _any("languages")
_JOB = rf"""(?:[\w-]{{1,20}} ){{0,3}}(?:[a-z]{{3,14}}(?:ist|ian|eer|yst)|social worker|{_any("jobs")})"""
_ING = rf"""(?!{_any("not_gerunds")}ing\b)[a-z]{{2,14}}ing"""


class ClauseForm(NamedTuple):
    """A form of a clause: subject and verb, the auxiliary verb of a question for "I" and for others, certainty."""

    pattern: re.Pattern[str]
    first: str
    other: str
    weight: float


HEADS = tuple(ClauseForm(re.compile(pattern), first, other, weight) for pattern, first, other, weight in (
    (rf"(?P<who>{WHO})(?:'ve| have| has)? {_ADVERB}(?P<past>{PASTS}) ", "did", "did", 3.0),
    (rf"(?P<who>{WHO})(?:'ve| have| has|'s) {_ADVERB}(?P<verb>been {_ING}) ", "have", "has", 2.5),
    (rf"(?P<who>{WHO})(?:'m|'re| am| are| is|'s) {_ADVERB}"
     rf"(?P<verb>(?:planning|going|hoping|scheduled) to {BASES}|{_ING}) ", "am", "is", 2.0),
    (rf"(?P<who>I|we) {_ADVERB}(?P<verb>(?:need|have|plan) to {BASES}) ", "do", "does", 2.0),
    (rf"(?P<who>I|we) (?P<verb>(?:usually|always|often|typically|normally|generally) {BASES}) ", "do", "does", 2.5)))


class FactRule(NamedTuple):
    """A kind of fact: its pattern with the group ``answer``, the form of its question, its certainty."""

    kind: str
    pattern: re.Pattern[str]
    question: str
    weight: float


# An empty question: the segment stays in the questions about others (but for "skip") and is not asked about.
SEGMENTS = tuple(FactRule(kind, re.compile(pattern), question, weight) for kind, pattern, question, weight in (
    ("frequency", rf"(?P<answer>{OFTEN})", "How often {did} {core}?", 2.0),
    ("time", rf"(?P<answer>{FIXED}|{RELATIVE}|{CLOCK})(?: {CLOCK})?", "When {did} {core}?", 3.0),
    ("duration", rf"for (?P<answer>{LENGTH})(?: now)?", "How long {did} {core}?", 2.5),
    ("since", rf"since (?P<answer>{_DATE}|last {UNIT}|college|high school|childhood)", "Since when {did} {core}?", 2.5),
    ("amount", rf"for (?P<answer>{MONEY})", "How much {did} {core} for?", 3.0),
    ("person", rf"with (?P<answer>{_SOMEONE}|{_CAPITAL})(?= |$)", "Who {did} {core} with?", 2.0),
    ("source", rf"from (?P<answer>{_SOMEONE}(?!'))(?= |$)", "Who {did} {core} from?", 2.5),
    ("source", rf"from (?P<answer>(?:the |a |an )?(?:{_WORD} ){{0,3}}(?:{_PLACE}|{_NAME}))(?= |$)",
     "Where {did} {core} from?", 2.0),
    ("place", rf"(?P<answer>(?:at|in|near) (?!{_LANGUAGE})(?:the |a |an |my |our )?(?:{_WORD} ){{0,4}}(?:{_PLACE}|"
              rf"{_NAME})(?: in {_NAME})?)(?= |$)", "Where {did} {core}?", 2.0),
    ("skip", rf"""{_any("skipped")}(?= |$)""", "", 0.0),
    ("occasion", rf"for (?:my|our) {NOUNS}(?: (?:to|in|at) {NOUNS})?", "", 0.0),
    ("other", rf"(?:{'|'.join(_PREPOSITIONS)}) {NOUNS}", "", 0.0)))

_BE = "(?:is|was|are|were)"
_ROLE = _any("roles")
_APPOINTMENT = _any("appointments")
_CHANGES = rf"(?P<who>{WHO})(?:'ve| have| has)? {_ADVERB}(?P<past>"
_RATHER = "I (?:really |usually |generally |actually )?prefer "
_FAVOURITE = "(?:all-time |personal |new |current )?favou?rite"
_NO_VERB = rf"(?!(?:{BASES}|be)\b)"

STATES = tuple(FactRule(kind, re.compile(pattern), question, weight) for kind, pattern, question, weight in (
    ("name", rf"my (?P<x>{NOUNS}),? (?:{_BE}|who is|who's) (?:now )?(?:called|named) (?P<answer>{TITLE})",
     "What is my {x} called?", 4.0),
    ("name", rf"(?P<x>{_CAPITAL}'s {NOUNS}) {_BE} (?:now )?(?:called|named) (?P<answer>{TITLE})",
     "What is {x} called?", 4.0),
    ("name", rf"my (?P<x>{NOUNS})'s name (?:is|was) (?P<answer>{TITLE})", "What is my {x} called?", 4.0),
    ("name", rf"I(?: have|'ve got|'ve| have got) an? (?P<x>{NOUNS}),? (?:called|named) (?P<answer>{TITLE})",
     "What is my {x} called?", 4.0),
    ("name", rf"(?P<answer>{_NAME}) is now my (?P<x>{NOUNS})", "Who is my {x} now?", 3.5),
    ("name", rf"(?P<answer>{_NAME}) is my (?P<x>{NOUNS}) now", "Who is my {x} now?", 3.5),
    ("name", rf"my (?P<x>{NOUNS}) is now (?P<answer>{_NAME})$", "Who is my {x} now?", 3.5),
    ("name", rf"my (?P<x>{NOUNS}) is (?P<answer>{_NAME}) now$", "Who is my {x} now?", 3.5),
    ("name", rf"my (?:new )?(?P<x>{_ROLE}) is (?P<answer>{_NAME})$", "Who is my {x}?", 3.5),
    ("age", rf"my (?P<x>{KIN}|(?:{_WORD} ){{0,2}}{PETS}){_NAMED} (?:is|just turned|turned|is turning|will be) "
            r"(?:now |only |about |almost |already )?(?P<answer>\d{1,2}(?: (?:years?|months?|weeks?)(?: old)?)?)"
            r"(?: now)?(?= and |$)",
     "How old is my {x}?", 4.0),
    ("age", r"I(?:'m| am| just turned| turned) (?:now |only |about |almost |already )?"
            r"(?P<answer>\d\d)(?: years? old)?(?: now)?$", "How old {am} I?", 3.5),
    ("age", rf"my (?P<answer>\d{{1,2}}[- ](?:year|month|week)[- ]old) (?P<x>{KIN}|{PETS})", "How old is my {x}?", 3.5),
    ("amount", rf"my (?:current |new )?(?P<x>{NOUNS}(?: for {NOUNS})?) (?:is|was|costs?|cost me|went up to|"
               rf"increased to) (?:now |currently |set at )?(?P<answer>{MONEY})", "How much is my {x}?", 4.0),
    ("amount", rf"(?P<x>(?:my|the) {NOUNS}) charged (?:me|us) (?P<answer>{MONEY})", "How much did {x} charge me?", 3.5),
    ("amount", rf"(?P<x>(?:my|the) {NOUNS}) costs? (?:(?:me|us) )?(?P<answer>{MONEY})", "How much did {x} cost?", 3.5),
    ("amount", rf"(?:I|we)(?:'ve)? {_ADVERB}(?P<past>paid|spent) (?:a total of )?(?P<answer>{MONEY}) (?P<on>for|on) "
               rf"(?P<x>{NOUNS})", "How much did I {past} {on} {x}?", 4.0),
    ("duration", rf"my (?P<x>{NOUNS}(?: to {_WORD}| from {_WORD})?) (?:is|was|takes|lasts|took) (?P<answer>{LENGTH}|"
                 rf"(?:about |around |over |only )?{_NUMBER} (?:miles|kilometers|km|feet|meters))"
                 r"(?: (?:long|each way|one way|now|round trip))?$", "How long is my {x}?", 3.0),
    ("duration", rf"it took (?:me|us) (?P<answer>{LENGTH}) to (?P<x>{BASES} {NOUNS}(?: (?:to|from|at|in) {NOUNS})?)$",
     "How long did it take me to {x}?", 3.5),
    ("duration", rf"it takes (?:me|us) (?P<answer>{LENGTH}) to (?P<x>{BASES} {NOUNS}(?: (?:to|from|at|in) {NOUNS})?)$",
     "How long does it take me to {x}?", 3.5),
    ("duration", r"(?:I|we)(?:'ve| have) (?P<x>(?:lived|worked|studied|volunteered|taught) (?:in|at|as|for|near|with) "
                 rf"{NOUNS}) for (?P<answer>{LENGTH})", "How long {have} I {x}?", 3.5),
    ("duration", r"(?:I|we)(?:'ve| have) (?P<x>(?:been (?:an? |at |with |in |on |the )|had my |owned my |known my |"
                 rf"played |owned ){NOUNS}) for (?P<answer>{LENGTH})", "How long {have} I {x}?", 3.0),
    ("date", rf"my (?P<x>{NOUNS}) (?P<be>is|will be|starts|is coming up|is scheduled for|falls|is happening) "
             rf"(?:on |in |at |for )?(?P<answer>{_TIME}|{_DATE})", "When is my {x}?", 3.5),
    ("date", rf"(?:I|we)(?: have|'ve got| have got) an? (?P<x>(?:{_WORD} ){{1,3}}{_APPOINTMENT}) "
             rf"(?P<answer>{_TIME}(?: {CLOCK})?)", "When is my {x}?", 4.0),
    ("date", rf"my (?P<x>{NOUNS}) (?:was|was scheduled for|took place) (?:on |in |at |for )?(?P<answer>{_TIME}|"
             rf"{_DATE})",
     "When was my {x}?", 3.5),
    ("place", rf"my (?P<x>{NOUNS}) (?P<be>is|was|is located|was held|will be) (?P<answer>(?:in|at|near) (?:the |a |"
              rf"an )?(?:{_WORD} ){{0,4}}(?:{_PLACE}|{_NAME}))(?= |$)", "Where is my {x}?", 2.5),
    ("job", rf"my (?P<x>{KIN}){_NAMED} (?:is|was|works as) an? (?P<answer>{_JOB})(?= |$)",
     "What does my {x} do for work?", 3.0),
    ("job", rf"I(?:'m| am|'ve been) (?:currently |now |working as )?an? (?P<answer>{_JOB})(?= |$)(?! in progress)",
     "What {do} I do for work?", 3.0),
    ("job", rf"I(?: currently| now)? work (?P<answer>as (?:an? )?{NOUNS})", "What {do} I work as?", 3.5),
    ("job", rf"I(?: currently| now)? (?P<x>work|volunteer|intern|teach) (?P<answer>(?:at|for) {NOUNS}|in (?:the |an? )?"
            rf"(?:{_WORD} ){{0,4}}(?:industry|sector|department|field|team|{_PLACE}|{_NAME})(?= |$))",
     "Where {do} I {x}?", 3.5),
    ("home", rf"(?:I|we)(?: currently| now)? live (?P<answer>(?:in|at|near|on) {NOUNS}(?: in {_NAME})?)",
     "Where {do} I live?", 3.5),
    ("home", rf"(?:I|we) grew up (?P<answer>(?:in|on|near) {NOUNS})", "Where did I grow up?", 3.5),
    ("home", rf"(?:I|we) was born (?P<answer>(?:in|on|near) {NOUNS})", "Where was I born?", 3.5),
    ("home", rf"(?:I'm|I am) (?P<x>originally from|from|based|living)(?: in)? (?P<answer>{_NAME})",
     "Where {am} I {x}?", 3.0),
    ("home", rf"my (?P<x>{KIN}){_NAMED} (?:currently )?(?:lives|is living) (?P<answer>(?:in|at|near) {NOUNS})",
     "Where does my {x} live?", 3.5),
    ("job", rf"my (?P<x>{KIN}){_NAMED} (?:currently )?(?:works|is working) (?P<answer>(?:in|at|for) {NOUNS})",
     "Where does my {x} work?", 3.5),
    ("degree", r"I(?:'ve| have)? (?:an? |got an? |hold an? )?(?P<x>(?:bachelor's |master's |undergraduate |"
               r"graduate )?degree|"
               rf"PhD|major|minor|certification) in (?P<answer>{NOUNS})", "What {do} I have a {x} in?", 3.5),
    ("favourite", rf"my (?P<x>{_FAVOURITE} {NOUNS}(?: (?:in|at|for|from) {NOUNS})?) (?:{_BE}|has to be|would be|"
                  rf"has been) (?:actually |probably |definitely |still |always |the |a )?(?P<answer>(?!to ){NOUNS})",
     "What is my {x}?", 3.5),
    ("favourite", rf"(?P<answer>{TITLE}) (?:is|was) (?:probably |definitely |still )?my (?P<x>{_FAVOURITE} {NOUNS})",
     "What is my {x}?", 3.0),
    ("preference", rf"{_RATHER}(?P<answer>(?!to ){NOUNS}) (?:over|to|instead of|rather than|than) (?P<x>{NOUNS})",
     "What {do} I prefer to {x}?", 3.5),
    ("preference", rf"{_RATHER}(?P<answer>(?!to |the ){NOUNS}) (?P<on>for|on|in) (?P<x>{NOUNS})",
     "What {do} I prefer {on} {x}?", 3.0),
    ("preference", rf"{_RATHER}(?P<answer>(?!to |the ){NOUNS})$", "What {do} I prefer?", 1.0),
    ("health", r"I(?:'m| am) (?:also |severely |mildly |slightly )?(?P<x>allergic to|intolerant to|intolerant of|"
               rf"sensitive to|afraid of|scared of) (?P<answer>{NOUNS})", "What {am} I {x}?", 3.5),
    ("health", rf"my (?P<x>{KIN}|{PETS}){_NAMED} is (?:also |severely )?allergic to (?P<answer>{NOUNS})",
     "What is my {x} allergic to?", 3.5),
    ("possession", r"(?:I|we)(?: currently| now| also| already)? (?:have|own|'ve got) (?:about |around |over |"
                   rf"at least )?(?P<answer>{COUNT}) (?P<x>(?!{UNIT}\b|(?:more|other|options|of|main|question|thing|"
                   rf"friend)s?\b){NOUNS})",
     "How many {x} {do} I have?", 3.5),
    ("change", rf"{_CHANGES}switched|upgraded|moved|went|changed|transitioned) (?P<o>my {NOUNS} )?from "
               rf"(?P<x>(?!a |the |{COUNT} ?%){NOUNS}) to (?P<answer>{NOUNS})",
     "What did {who} {past} {o}to from {x}?", 4.0),
    ("change", rf"{_CHANGES}replaced|swapped|traded|exchanged)(?: in| out)? (?P<x>my {NOUNS}) (?P<on>with|for) "
               rf"(?P<answer>{NOUNS})", "What did {who} {past} {x} {on}?", 4.0),
    ("change", rf"{_CHANGES}upgraded|changed|switched|increased|extended|renamed|raised|lowered|"
               rf"reduced) (?P<x>my {NOUNS}) to (?P<answer>{_NO_VERB}{NOUNS})", "What did {who} {past} {x} to?", 4.0)))

EMPTY = {"amount": "(?:overall |total )?(?:budget|goal|total|order|order total)", "name": OTHERS, "job": "career",
         "home": "(?:in|near) (?:the|an?|another|my) (?:city|town|area|country)", "change": ".*-",
         "favourite": ".*(?:favou?rites?|favou?rite (?:part|one|thing|kind)s?|[^s]s)"}
"""Subjects (or answers, where a rule has no subject) of a kind that say too little without their context."""

NAMES = re.compile(
    rf"\b[Mm]y (?P<x>(?:(?:younger|older|little|big|elder|twin) )?(?:{_FAMILY}|best friend|cousin|aunt|uncle|"
    rf"neighbou?r)|"
    rf"(?:[a-z-]{{2,15}} ){{0,2}}{PETS})(?:,| is|,? (?:named|called)|) "
    r"(?P<answer>(?:(?:Mrs?|Ms|Dr)\. )?[A-Z][a-z]{1,15})(?='s|[ ,.!?]|$)")
NO_NAME = frozenset(words("no_name"))

DANGLING = re.compile(rf"""\b{_any("dangling")}\b""", re.IGNORECASE)
"""Words that need their context, or say nothing: a noun phrase with one of them is not used."""
VAGUE = frozenset(words("vague"))
"""Words that do not tell a thing from another."""
