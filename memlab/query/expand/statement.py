"""Questions as statements, the form of most memories: "Where did I buy my bike?" as "I bought my bike".

Rules put the verb into its place and tense.
"""

from __future__ import annotations

import re

_PAST: dict[str, str] = dict(re.findall(r"(\w+)/(\w+)", """
be/was become/became begin/began break/broke bring/brought build/built buy/bought catch/caught choose/chose come/came
cost/cost cut/cut do/did draw/drew drink/drank drive/drove eat/ate fall/fell feed/fed feel/felt fight/fought find/found
fly/flew forget/forgot get/got give/gave go/went grow/grew hang/hung have/had hear/heard hide/hid hit/hit hold/held
hurt/hurt keep/kept know/knew lead/led learn/learned leave/left lend/lent let/let lose/lost make/made mean/meant
meet/met pay/paid plan/planned put/put quit/quit read/read ride/rode run/ran say/said see/saw sell/sold send/sent
set/set shoot/shot shop/shopped sing/sang sit/sat sleep/slept speak/spoke spend/spent stand/stood stop/stopped
swim/swam take/took teach/taught tell/told think/thought throw/threw try/tried understand/understood wake/woke
wear/wore win/won write/wrote jog/jogged travel/travelled prefer/preferred refer/referred"""))

_SUBJECT = (r"(?P<subject>(?:I|i|you|he|she|we|they|it)\b|(?:my|our|his|her|their|the|your) [\w'’-]+|"
            r"[A-Z][\w'’-]*(?: and (?:I|[A-Z][\w'’-]*))?)")
_HEAD = r"^(?:(?:what|which|who|whom|where|when|why|how)\b(?: (?P<thing>[^,]*?))?? )?"
_DID = re.compile(rf"{_HEAD}[Dd]id {_SUBJECT} (?P<verb>[a-z]+)\b(?P<rest>.*)$", re.IGNORECASE)
_DO = re.compile(rf"{_HEAD}(?:do|does) {_SUBJECT} (?P<verb>[a-z]+)\b(?P<rest>.*)$", re.IGNORECASE)
_AUX = re.compile(rf"{_HEAD}(?P<aux>have|has|had|will|would|can|could|should|am) {_SUBJECT}(?P<rest> .+)$",
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
    if match := _DO.match(text):
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
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + "ed"
