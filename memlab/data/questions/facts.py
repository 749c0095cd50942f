"""Facts that a turn states, as questions with their answers, by the rules of ``memlab.data.questions.rules``. English
only.

A text is cut into sentences and clauses. A clause has a head (who does what), an object and segments (when, where, with
whom, for how much): each segment, a number in the object, and the object are asked about in the words of the rest.

What would not make sense weeks later without its context is refused: pronouns without a noun, "this" and "there", vague
things, relative dates in a question. Questions, conditions, lists, orders to write a text, and clauses that are not
understood to their end give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from memlab.data.questions.rules import (
    BASE,
    BASES,
    COUNT,
    DANGLING,
    EMPTY,
    FIXED,
    HEADS,
    KIN,
    LENGTH,
    MONEY,
    NAMES,
    NO_NAME,
    NOUNS,
    OFTEN,
    PASTS,
    PETS,
    RELATIVE,
    SEGMENTS,
    STATES,
    STOPPED,
    TITLE,
    UNIT,
    VAGUE,
    WHO,
    words,
)
from memlab.data.questions.team import LABEL, team_facts

LONGEST = 4000
"""Characters of a turn that is read; a longer one was pasted or generated, and gives nothing."""

LONGEST_SENTENCE = 400
"""Characters of a sentence that is read, which bounds the time for a text by its length."""


TEAM_WEIGHT = 3.5
"""Certainty of what a person with a name states about things."""


@dataclass(frozen=True)
class StatedFact:
    """A question, its answer in the words of the text, the kind of fact, and how specific and certain it is."""

    question: str
    answer: str
    kind: str
    weight: float


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
_TIMED = re.compile(rf"(?P<time>{FIXED}|{RELATIVE}),?(?: |$)", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(r"(?:he|she|they|it|you|the|there)\b")
_NO_SUBJECT = re.compile(r"(?:even |just |also |then |recently )?(?P<past>[a-z]+) ")
_WHO = re.compile(WHO)
_BEGUN_BY_VERB = re.compile(r"(?:Just )?(?P<past>[A-Z]?[a-z]+) ")
_RELATIVE_CLAUSE = re.compile(rf"\b(?P<object>(?:an?|my|the|some) {NOUNS})(?: that| which)? (?:I|we)(?:'ve|'d| had)? "
                              rf"(?:just |recently |actually |finally )?(?P<past>{PASTS})(?= )")


def _of_sentence(sentence: str, named: bool) -> Iterator[StatedFact]:
    """Yield the facts of a sentence; ``named`` asks in the third person."""
    for match in NAMES.finditer(sentence):
        if match["answer"] not in NO_NAME:
            yield StatedFact(f"What is my {match['x']} called?", match["answer"], "name", 3.0)
    for match in _RELATIVE_CLAUSE.finditer(sentence):   # "the vase that I bought at ...": "I bought the vase at ..."
        rest = _CLAUSE.split(sentence[match.end():].rstrip("?!. "), maxsplit=1)[0].split(" to ")[0]
        yield from _events(f"I {match['past']} {match['object']}{rest}", "", named)
    if (verb := _BEGUN_BY_VERB.match(sentence)) and BASE.get(past := verb["past"].lower(), past) != past:
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
        elif subject and (verb := _NO_SUBJECT.match(clause)) and verb["past"] in BASE:
            clause = f"{subject} {clause}"
        yield from _state(clause, named) or _events(clause, time, named)
        time = ""


_LIVING = re.compile(rf"{KIN}|{PETS}|siblings|chicken|hen|plant|bike|car|guitar|camera|bicycle")


def _state(clause: str, named: bool) -> list[StatedFact]:
    """Return the fact of the first rule of ``STATES`` that fits; none if it says too little."""
    for kind, pattern, question, weight in STATES:
        if match := pattern.match(clause):
            parts = {"x": "", "o": ""} | {name: value or "" for name, value in match.groupdict().items()}
            parts |= {"am": "is", "do": "does", "have": "has"} if named else {"am": "am", "do": "do", "have": "have"}
            parts["past"] = BASE.get(parts.get("past", ""), "")
            if kind in EMPTY and re.fullmatch(EMPTY[kind], parts["x"] or parts["answer"]) or parts["x"].endswith("'s"):
                return []
            if question.startswith("How many"):
                parts["x"] = parts["x"].removesuffix(" left")
                if " " not in parts["x"] and not _LIVING.match(parts["x"]):
                    return []
            if parts.get("be", "").startswith("was"):
                question = question.replace(" is ", " was ")
            return [StatedFact(question.format(**parts), parts["answer"], kind, weight)]
    return []


_PARTICLE = re.compile(r"(?:up|out|off|down|over|back|away|together|home)\b ?")
_GERUND = re.compile(r"[a-z]{2,14}ing (?=\S)")
_RECEIVER = re.compile(r"(?:me|us|my [a-z]{3,12}) (?=a |an |the |my |some |[A-Z0-9\"$])")
_OBJECT = re.compile(rf"(?:{NOUNS})(?= |$)")
_DETERMINED = re.compile(rf"(?:an?|the|my|our|some|{COUNT}|tickets|married|engaged|promoted|accepted|hired|groceries) |"
                         r"(?:married|engaged|promoted|tickets|groceries)$|[A-Z\"\d]")
_IDIOM = re.compile(
    r"(?:a|an|the|my)? ?(?:great|good|hard|amazing|wonderful|fun|nice|tough|bad|rough|really|particularly|pretty|very|"
    r"quite|so|super|"
    r"too|blast)\b.{0,20}(?:|day|night|turnout|start|experiences?|people|blast)$|"
    r".*\b(?:ton|bunch|couple|number|fun|blast|interest|experiences?)\b")
_CALLED = re.compile(rf"(?:called|named|titled) (?P<answer>{TITLE})")
_COUNTED = re.compile(rf"(?P<answer>{COUNT}) (?P<rest>(?!{UNIT}\b|percent|of\b|%|more\b)(?:[A-Za-z'-]{{1,20}} ){{0,4}}"
                      r"(?:[a-z]{2,20}s|people|children|women|men|fish)(?= of |$).{0,60})")
_INFINITIVE = re.compile(
    rf"to (?:{BASES}|be|ensure|avoid|improve|know|think|figure)\b|"
    r"to (?!(?:an?|the|my|our|some)\b)[a-z]+ (?:an?|the|my|our|some|up|off|out|for|in|on|with|more|money|awareness)\b")
_DETERMINER = re.compile(r"^(?:an?|the|my|our|some) ")
_MONEY, _FIXED, _OFTEN = re.compile(MONEY), re.compile(FIXED), re.compile(OFTEN)
_SPELL = re.compile(LENGTH)
_WITHIN = re.compile(r"in (?:\d|an?|one|two|three)\b")
_PERSON = re.compile(rf"my {KIN}$")

_GERUND_OF = {f"{base.removesuffix('e')}ing": base for base in BASE.values()}
_LIGHT = frozenset(words("light"))
_TAKE_GERUND = frozenset(words("take_gerund"))
_TAKE_RECEIVER = frozenset(words("take_receiver"))
_MOTION = frozenset(words("motion"))
_BUYING = frozenset(words("buying"))
_GIVING = frozenset(words("giving"))
_RECEIVING = frozenset(words("receiving"))
_TELLING = frozenset(words("telling"))
_PREPARING = frozenset(words("preparing"))   # for what has the date
_STATUS = frozenset(words("status"))
_KEPT = frozenset({"person", "source", "place", "occasion", "other"})
_BELONGS = {"person": ("other", "source"), "place": ("other",), "source": ("other", "place")}


@dataclass(frozen=True)
class _Segment:
    kind: str
    text: str
    answer: str
    question: str
    weight: float
    kept: bool   # it may stand in the questions about other parts


@dataclass(frozen=True)
class _Event:
    who: str
    auxiliary: str
    base: str       # of the last verb: "buy" of "planning to buy"
    verb: str       # as a question has it: "get back", "planning to buy"
    past: str       # "got back"; empty if the clause is not in the past
    thing: str
    called: str     # the words of "called Rex"
    name: str
    segments: list[_Segment]
    weight: float

    def around(self, without: Collection[int] = ()) -> list[str]:
        """Return the segments that a question keeps, but for those that it asks about."""
        return [segment.text for n, segment in enumerate(self.segments) if segment.kept and n not in without]


def _event(clause: str, time: str, named: bool) -> _Event | None:
    """Return the parts of a clause with a head of ``HEADS``; None if it has none, is vague, or is not understood."""
    head, form = next(((match, form) for form in HEADS if (match := form.pattern.match(clause))), (None, None))
    if head is None or form is None:
        return None
    who, rest = "I" if head["who"] == "we" else head["who"], clause[head.end():]
    first = who == "I" and not named
    past = head.groupdict().get("past") or ""
    verb = BASE[past] if past else head["verb"]
    base = verb.split()[-1]
    light = base in _LIGHT
    base = _GERUND_OF.get(base, base)
    taken = [_PARTICLE]
    taken += [_GERUND] * (base in _TAKE_GERUND) + [_RECEIVER] * (base in _TAKE_RECEIVER)
    phrasal = False
    for pattern in taken:
        if match := pattern.match(rest):
            verb, past, rest = f"{verb} {match[0].strip()}", past and f"{past} {match[0].strip()}", rest[match.end():]
            phrasal = phrasal or pattern is _PARTICLE
    thing = ""
    if match := _OBJECT.match(rest):
        thing, rest = match[0], rest[match.end():].strip()
        if DANGLING.search(thing) or _IDIOM.match(thing) or (light and not _DETERMINED.match(thing)):
            return None
    elif not phrasal and light and base not in _MOTION:
        return None
    called = _CALLED.match(rest)
    if thing and not called and not _definite(thing):
        return None
    segments, rest = _segments(rest[called.end():].strip() if called else rest)
    if not STOPPED.match(rest):
        return None
    vague = next((n for n, one in enumerate(segments) if one.kind == "other" and not one.kept), len(segments))
    if vague < len(segments) and (base in _GIVING | _MOTION
                                  or segments[vague].text.startswith(("to ", "into ", "of ", "by "))):
        return None
    segments = segments[:vague]
    if time:
        segments.append(_Segment("time", time, time, "When {did} {core}?", 2.5, False))
    return _Event(who, f"{form.first if first else form.other} {who}", base, verb, past, thing,
                  called[0] if called else "", called["answer"] if called else "", segments, form.weight)


def _segments(rest: str) -> tuple[list[_Segment], str]:
    """Return at most six segments at the beginning of a text, and what follows them."""
    segments: list[_Segment] = []
    while rest and len(segments) < 6 and not _INFINITIVE.match(rest):
        for kind, pattern, question, weight in SEGMENTS:
            if found := pattern.match(rest):
                kept = kind in _KEPT and not DANGLING.search(found[0]) and _definite(found[0].split(" ", 1)[1])
                segments.append(_Segment(kind, found[0], found.groupdict().get("answer") or "", question, weight, kept))
                rest = rest[found.end():].strip()
                break
        else:
            break
    return segments, rest


def _events(clause: str, time: str, named: bool) -> Iterator[StatedFact]:
    """Yield what a clause with a head says: the name and number of its object, its segments, and the object."""
    event = _event(clause, time, named)
    if event is None:
        return
    thing, kept = event.thing, event.around()
    if event.name and event.past and thing:
        own = event.base in ("adopt", "get", "have", "buy") and re.search(rf"{PETS}$", thing)
        yield StatedFact(f"What is {_DETERMINER.sub('my ', thing)} called?" if own else
                   f"What is the name of {_DETERMINER.sub('the ', thing)} that {event.who} {event.past}?",
                   event.name, "name", event.weight + 1)
    if _MONEY.match(thing) and kept:
        yield StatedFact(_join("How much", event.auxiliary, event.verb, *kept) + "?", thing, "amount", event.weight)
    spell = event.base == "spend" and _SPELL.fullmatch(thing)
    if spell and kept:
        yield StatedFact(_join("How long", event.auxiliary, event.verb, *kept) + "?", thing, "duration", event.weight)
    if _MONEY.match(thing) or (thing and not _definite(thing)):
        return
    for place in range(len(event.segments)):
        yield from _about_segment(event, place)
    if spell:
        return
    if (counted := _COUNTED.match(thing)) and (kept or " " in counted["rest"]
                                               or event.base not in ("get", "earn", "reach")):
        yield StatedFact(_join("How many", counted["rest"], event.auxiliary, event.verb, *kept) + "?",
                         counted["answer"], "number", event.weight + 1)
    yield from _about_object(event)


def _about_segment(event: _Event, place: int) -> Iterator[StatedFact]:
    """Yield the question about one segment; what belongs to it ("my friends from church") is part of the answer."""
    segment, base = event.segments[place], event.base
    kind, question, answer, weight = segment.kind, segment.question, segment.answer, segment.weight
    before = event.segments[place - 1].kind if place else ""
    after = event.segments[place + 1].text if place + 1 < len(event.segments) else ""
    end = place + 1
    while end < len(event.segments) and event.segments[end].kind in _BELONGS.get(kind, ()):
        answer, end = f"{answer} {event.segments[end].text}", end + 1
    around = event.around([n for n, one in enumerate(event.segments) if place <= n < end or (
        kind == "person" and n > place and one.kind != "other")])
    core, nominal = _join(event.verb, event.thing, *around), _DETERMINER.sub("the ", event.thing)
    if base in _MOTION and segment.text.startswith("to "):
        kind, answer, question, weight = "place", segment.text, "Where {did} {core}?", 2.0
    elif kind == "amount" and event.thing and base in _BUYING:
        question, core = "How much did {who} pay for {core}?", _join(nominal, *around)
    elif kind == "time" and event.past and _WITHIN.match(answer):
        kind, question, answer = "duration", "How long did it take {whom} to {core}?", answer.removeprefix("in ")
    misread = {
        "since": event.past, "frequency": event.past,
        "duration": _OFTEN.match(after) or ("been" in event.verb and re.search("minute|hour", answer)),
        "time": base in _PREPARING and before in ("other", "occasion"),
        "place": before in ("source", "place") or event.verb.endswith(" back") or (
            before == "other" and base in _MOTION and not event.past),
        "source": before == "other" or base in _MOTION or event.verb.endswith(" back") or (
            question.startswith("Where") and (base not in _RECEIVING or after.startswith("to ")))}
    if question and answer and (event.thing or around or base == "move") and not misread.get(kind):
        whom = "me" if event.who == "I" else event.who
        yield StatedFact(question.format(did=event.auxiliary, who=event.who, whom=whom, core=core), answer, kind,
                   event.weight + weight - 2)


def _about_object(event: _Event) -> Iterator[StatedFact]:
    """Yield the question about the object, if a place, person, occasion or date tells which; "of ..." belongs to it."""
    others = [n for n, one in enumerate(event.segments)
              if one.kind == "other" and not (one.text.startswith("to ") and event.base in _GIVING)]
    fixed = [one.text for one in event.segments if one.kind == "time" and _FIXED.fullmatch(one.text)][:1]
    around = event.around(others)
    if not event.thing or event.thing in _STATUS or event.verb in ("planning", "going", "help") or (
            event.verb.endswith(" back") or others != list(range(len(others)))) or not (
            around or fixed or event.base in _TELLING):
        return
    about = [event.segments[n].text for n in others]
    if event.base in ("meet", "marry") or _PERSON.match(event.thing):
        yield StatedFact(_join("Who", event.auxiliary, event.verb, *about, *around, *fixed) + "?",
                   _join(event.thing, event.called), "object", event.weight - 1)
    else:
        yield StatedFact(_join("What", event.auxiliary, event.verb, *around, *fixed) + "?",
                   _join(event.thing, event.called, *about), "object", event.weight - 1)


def _join(*words: str) -> str:
    return " ".join(filter(None, words))


def _definite(words: str) -> bool:
    """Return whether a noun phrase names its thing: "the gym" does not, "the gym in Rome" and "my gym" do."""
    content = [word for word in re.findall(r"[\w'-]+", words.lower()) if word not in VAGUE]
    return bool(content) and (not words.startswith("the ") or len(content) > 1 or words[4:5].isupper())


_FORM = re.compile(r"^(?:What is the name of|How long did it|How long does it|How \w+|What)|that (?=I|my)")
_SMALL = frozenset(words("small"))


def _sound(fact: StatedFact) -> bool:
    """Return whether a question stands without its context and does not hold its answer."""
    asked, told = (set(re.findall(r"[\w'-]+", one.lower())) for one in (fact.question, fact.answer))
    return not told - _SMALL <= asked and not DANGLING.search(_FORM.sub("", fact.question)) and not DANGLING.fullmatch(
        fact.answer) and len(fact.question) <= 160


def _specific(fact: StatedFact) -> float:
    """Return up to 1.5 for the content words of a question; names count more."""
    words = [word for word in fact.question.rstrip("?").split()[3:] if word.lower() not in VAGUE]
    return min(1.5, .2 * len(words) + .3 * any(word[0].isupper() for word in words))


def _about(question: str, speaker: str | None) -> str:
    """Return the question in the first person, or by the speaker's name: "their" if the name stands in it already."""
    question = re.sub(r"\bour\b", "my", re.sub(r"\bus\b", "me", re.sub(r"\bwe\b", "I", question)))
    if speaker is None:
        return question
    whose = "their" if re.search(r"\bI\b", question) else f"{speaker}'s"
    words = {"my": whose, "I": speaker, "me": speaker}
    return re.sub(r"\b(?:my|I|me)\b(?!')", lambda match: words[match[0]], question)
