"""Facts that a turn states, as questions with their answers, by the rules of ``memlab.data.questions.rules``. English
only.

A text is cut into sentences and clauses (``memlab.data.questions.clauses``).

What would not make sense weeks later without its context is refused: pronouns without a noun, "this" and "there", vague
things, relative dates in a question. Questions, conditions, lists, orders to write a text, and clauses that are not
understood to their end give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memlab.data.questions import rules
from memlab.data.questions.clauses import StatedFact, events
from memlab.data.questions.team import LABEL, team_facts

LONGEST = 4000
"""Characters of a turn that is read; a longer one was pasted or generated, and gives nothing."""

LONGEST_SENTENCE = 400
"""Characters of a sentence that is read, which bounds the time for a text by its length."""


TEAM_WEIGHT = 3.5
"""Certainty of what a person with a name states about things."""


def facts_of(text: str, speaker: str | None = None, *, assistant: bool = False) -> list[StatedFact]:
    """Return what a turn states, in the order of the text; each question once.

    Args:
        text: the turn's text.
        speaker: the name to ask by; None asks about "I" and "my".
        assistant: whether only that is read which the turn says the user mentioned.

    >>> [(fact.question, fact.answer) for fact in facts_of("I adopted a beagle called Rex in May.")]
    [('What is my beagle called?', 'Rex'), ('When did I adopt a beagle?', 'in May'), \
('What did I adopt in May?', 'a beagle called Rex')]
    """
    text = text.translate(_QUOTES)
    if len(text) > LONGEST or _ORDERS.match(text[:60]):
        return []
    if speaker is not None:
        text = "\n".join(LABEL.sub("", line) for line in text.split("\n"))
    spans, found = " ".join(text.split()), dict[str, StatedFact]()
    for sentence in _mentions(text) if assistant else _sentences(text):
        stated = [] if speaker is None or assistant else list(team_facts(sentence, speaker))
        for question, answer, kind in stated:
            fact = StatedFact(question, answer, kind, TEAM_WEIGHT)
            if _sound(fact):
                found.setdefault(question, replace(fact, weight=TEAM_WEIGHT + _specific(fact)))
        if stated:
            continue
        for fact in _of_sentence(sentence, named=speaker is not None):
            if _sound(fact) and fact.answer in spans:
                question = _about(fact.question, speaker)
                found.setdefault(question, StatedFact(question, fact.answer, fact.kind, fact.weight + _specific(fact)))
    return list(found.values())


_QUOTES = {0x2018: "'", 0x2019: "'", 0x201c: '"', 0x201d: '"'}
_ORDERS = re.compile(
    r"\W*(?:please |can you |could you |now )?(?:write|rewrite|re-write|create|generate|act as|act like|translate|"
    r"summari[sz]e|continue|pretend|imagine|provide|paraphrase|proofread|edit|correct|compose|draft|you are|you're|"
    r"role ?play|improve|convert|answer|make|give me|as an ai|fix|expand|elaborate|describe|explain)\b", re.IGNORECASE)
_LISTED = re.compile(r"\s*(?:[-*•#>|`\d(]|\w{1,20}: |[A-Z ]{8,})")
_SENTENCE = re.compile(r"(?<=[.!?;])(?<!\bSt\.)(?<!\b[DM]r\.)(?<!\bM[rs]s\.)(?<!\bvs\.)[\"')]* +| [-–—]+ |\.\.\.+|"
                       r"\((?=I|my)|\)|: ")
_ASKS = re.compile(
    r"(?:(?:and|so|but|also|by the way|do you|oh),? )?(?:can|could|do|does|did|what|what's|how|how's|is|are|which|any|"
    r"would|should|have|has|who|when|where|why|will|was|were|got|know|if|given|based)\b", re.IGNORECASE)
_MENTIONED = re.compile(r"\b[Yy]ou(?: also|'ve| have|'d| had)?(?: also)? (?:mentioned|said|told me|shared|noted)"
                        r"(?: earlier| before| previously)?(?: that|,)? (?=you|your)")


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if not _LISTED.match(line):
            for sentence in _SENTENCE.split(" ".join(line.split())):
                if len(sentence) < LONGEST_SENTENCE and not (sentence.endswith("?") and _ASKS.match(sentence)):
                    yield sentence


def _mentions(text: str) -> Iterator[str]:
    """Yield what an assistant says that the user mentioned, as the user would say it."""
    for sentence in _sentences(text):
        if said := _MENTIONED.search(sentence):
            clause = re.sub(r"\b[Yy]our\b", "my", sentence[said.end():])
            yield re.sub(r"\b[Yy]ou\b", "I", re.sub(r"\b[Yy]ou(?:'re| are)\b", "I'm", clause))


_SUBJECT = r"(?:I|I'm|I've|I'd|I'll|we|we've|we're|my|it|he|she|they|it's|there|is|was|are)\b"
_CLAUSE = re.compile(
    r", +(?!(?:19|20)\d\d\b)|"
    rf"(?<! ) +(?=(?:and|but|so|because|since|as|while|when|after|before|which|who|whom|where|although|though|if|until|"
    rf"unless|whether|whenever|that) {_SUBJECT})|"
    r"(?<! ) +and (?=(?:even |just |also |then |recently )?[a-z]{2,14}(?:ed|ght|ew|old) )")
_LEAD = re.compile(
    r"(?:oh|by the way|btw|also|actually|well|and|but|so|because|since|as|though|although|anyway|plus|then|now|yeah|"
    r"yes|"
    r"no|hey|hi|ok|okay|hmm|wow|sure|thanks|speaking of which|in fact|honestly|for instance|for example|I mean|"
    r"I (?:also )?(?:remember|remembered|mentioned|realized|realised|noticed|forgot to mention|just remembered|think|"
    r"guess|"
    r"believe)(?: that)?|it's been|it reminds me|that reminds me|when|after|before|while|"
    r"my [a-z-]{2,16}(?: [A-Z][a-z]{1,15})? and(?= I )|like I said|as I mentioned|as I said|even though|unfortunately|"
    r"luckily|fortunately|recently|lately|currently|right now|similarly|personally|did I mention(?: that)?),? +",
    re.IGNORECASE)
_REFUSED = re.compile(r"(?:if|unless|whether|whenever|until|where|which|who|whom|that|like|than|would|could|should|"
                      r"might|not|never)\b", re.IGNORECASE)
_TIMED = re.compile(rf"(?P<time>{rules.FIXED}|{rules.RELATIVE}),?(?: |$)", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(r"(?:he|she|they|it|you|the|there)\b")
_NO_SUBJECT = re.compile(r"(?:even |just |also |then |recently )?(?P<past>[a-z]+) ")
_WHO = re.compile(rules.WHO)
_BEGUN_BY_VERB = re.compile(r"(?:Just )?(?P<past>[A-Z]?[a-z]+) ")
_RELATIVE_CLAUSE = re.compile(rf"\b(?P<object>(?:an?|my|the|some) {rules.NOUNS})(?: that| which)? (?:I|we)"
                              rf"(?:'ve|'d| had)? (?:just |recently |actually |finally )?(?P<past>{rules.PASTS})(?= )")


def _of_sentence(sentence: str, named: bool) -> Iterator[StatedFact]:
    """Yield the facts of a sentence; ``named`` asks in the third person."""
    for match in rules.NAMES.finditer(sentence):
        if match["answer"] not in rules.NO_NAME:
            yield StatedFact(f"What is my {match['x']} called?", match["answer"], "name", 3.0)
    for match in _RELATIVE_CLAUSE.finditer(sentence):   # "the vase that I bought at ...": "I bought the vase at ..."
        rest = _CLAUSE.split(sentence[match.end():].rstrip("?!. "), maxsplit=1)[0].split(" to ")[0]
        yield from events(f"I {match['past']} {match['object']}{rest}", "", named)
    if (verb := _BEGUN_BY_VERB.match(sentence)) and rules.BASE.get(past := verb["past"].lower(), past) != past:
        sentence = f"I {past}{sentence[verb.end('past'):]}"
    time, subject = "", "I"
    for clause in map(str.strip, _CLAUSE.split(sentence.rstrip("?!. "))):
        for _ in range(4):
            if lead := _LEAD.match(clause):
                clause = clause[lead.end():]
        if _REFUSED.match(clause):
            return
        if timed := _TIMED.match(clause):
            time, clause = timed["time"], clause[timed.end():]
        if not clause:
            continue
        if clause.startswith(("My ", "We ", "It ", "Our ", "The ")):
            clause = clause[0].lower() + clause[1:]
        if clause.startswith("our "):
            clause = f"my {clause[4:]}"
        if who := _WHO.match(clause):
            subject = who[0]
        elif _OTHER_SUBJECT.match(clause):
            subject = ""
        elif subject and (verb := _NO_SUBJECT.match(clause)) and verb["past"] in rules.BASE:
            clause = f"{subject} {clause}"
        yield from _state(clause, named) or events(clause, time, named)
        time = ""


_LIVING = re.compile(rf"{rules.KIN}|{rules.PETS}|siblings|chicken|hen|plant|bike|car|guitar|camera|bicycle")


def _state(clause: str, named: bool) -> list[StatedFact]:
    """Return the fact of the first rule of ``STATES`` that fits; none if it says too little."""
    for kind, pattern, question, weight in rules.STATES:
        if match := pattern.match(clause):
            parts = {"x": "", "o": ""} | {name: value or "" for name, value in match.groupdict().items()}
            parts |= {"am": "is", "do": "does", "have": "has"} if named else {"am": "am", "do": "do", "have": "have"}
            parts["past"] = rules.BASE.get(parts.get("past", ""), "")
            empty = kind in rules.EMPTY and re.fullmatch(rules.EMPTY[kind], parts["x"] or parts["answer"])
            if empty or parts["x"].endswith("'s"):
                return []
            if question.startswith("How many"):
                parts["x"] = parts["x"].removesuffix(" left")
                if " " not in parts["x"] and not _LIVING.match(parts["x"]):
                    return []
            if parts.get("be", "").startswith("was"):
                question = question.replace(" is ", " was ")
            return [StatedFact(question.format(**parts), parts["answer"], kind, weight)]
    return []


_FORM = re.compile(r"^(?:What is the name of|How long did it|How long does it|How \w+|What)|that (?=I|my)")
_SMALL = frozenset(rules.words("small"))


def _sound(fact: StatedFact) -> bool:
    """Return whether a question stands without its context and does not hold its answer."""
    asked, told = (set(re.findall(r"[\w'-]+", one.lower())) for one in (fact.question, fact.answer))
    dangling = rules.DANGLING.search(_FORM.sub("", fact.question)) or rules.DANGLING.fullmatch(fact.answer)
    return not dangling and not told - _SMALL <= asked and len(fact.question) <= 160


def _specific(fact: StatedFact) -> float:
    """Return up to 1.5 for the content words of a question; names count more."""
    content = [word for word in fact.question.rstrip("?").split()[3:] if word.lower() not in rules.VAGUE]
    return min(1.5, .2 * len(content) + .3 * any(word[0].isupper() for word in content))


def _about(question: str, speaker: str | None) -> str:
    """Return the question in the first person, or by the speaker's name: "their" if the name stands in it already."""
    question = re.sub(r"\bour\b", "my", re.sub(r"\bus\b", "me", re.sub(r"\bwe\b", "I", question)))
    if speaker is None:
        return question
    whose = "their" if re.search(r"\bI\b", question) else f"{speaker}'s"
    named = {"my": whose, "I": speaker, "me": speaker}
    return re.sub(r"\b(?:my|I|me)\b(?!')", lambda match: named[match[0]], question)
