"""Facts of one clause, as questions with their answers, by the rules of ``memlab.data.questions.rules``. English only.

A clause has a head (who does what), an object and segments (when, where, with whom, for how much): each segment, a
number in the object, and the object are asked about in the words of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from memlab.data.questions import rules


@dataclass(frozen=True)
class StatedFact:
    """A question, its answer in the words of the text, the kind of fact, and how specific and certain it is."""

    question: str
    answer: str
    kind: str
    weight: float


_PARTICLE = re.compile(r"(?:up|out|off|down|over|back|away|together|home)\b ?")
_GERUND = re.compile(r"[a-z]{2,14}ing (?=\S)")
_RECEIVER = re.compile(r"(?:me|us|my [a-z]{3,12}) (?=a |an |the |my |some |[A-Z0-9\"$])")
_OBJECT = re.compile(rf"(?:{rules.NOUNS})(?= |$)")
_DETERMINED = re.compile(rf"(?:an?|the|my|our|some|{rules.COUNT}|tickets|married|engaged|promoted|accepted|hired|"
                         r"groceries) |(?:married|engaged|promoted|tickets|groceries)$|[A-Z\"\d]")
_IDIOM = re.compile(
    r"(?:a|an|the|my)? ?(?:great|good|hard|amazing|wonderful|fun|nice|tough|bad|rough|really|particularly|pretty|very|"
    r"quite|so|super|"
    r"too|blast)\b.{0,20}(?:|day|night|turnout|start|experiences?|people|blast)$|"
    r".*\b(?:ton|bunch|couple|number|fun|blast|interest|experiences?)\b")
_CALLED = re.compile(rf"(?:called|named|titled) (?P<answer>{rules.TITLE})")
_COUNTED = re.compile(rf"(?P<answer>{rules.COUNT}) (?P<rest>(?!{rules.UNIT}\b|percent|of\b|%|more\b)"
                      r"(?:[A-Za-z'-]{1,20} ){0,4}(?:[a-z]{2,20}s|people|children|women|men|fish)(?= of |$).{0,60})")
_INFINITIVE = re.compile(
    rf"to (?:{rules.BASES}|be|ensure|avoid|improve|know|think|figure)\b|"
    r"to (?!(?:an?|the|my|our|some)\b)[a-z]+ (?:an?|the|my|our|some|up|off|out|for|in|on|with|more|money|awareness)\b")
_DETERMINER = re.compile(r"^(?:an?|the|my|our|some) ")
_MONEY, _FIXED, _OFTEN = re.compile(rules.MONEY), re.compile(rules.FIXED), re.compile(rules.OFTEN)
_SPELL = re.compile(rules.LENGTH)
_WITHIN = re.compile(r"in (?:\d|an?|one|two|three)\b")
_PERSON = re.compile(rf"my {rules.KIN}$")

_GERUND_OF = {f"{base.removesuffix('e')}ing": base for base in rules.BASE.values()}
_LIGHT = frozenset(rules.words("light"))
_TAKE_GERUND = frozenset(rules.words("take_gerund"))
_TAKE_RECEIVER = frozenset(rules.words("take_receiver"))
_MOTION = frozenset(rules.words("motion"))
_BUYING = frozenset(rules.words("buying"))
_GIVING = frozenset(rules.words("giving"))
_RECEIVING = frozenset(rules.words("receiving"))
_TELLING = frozenset(rules.words("telling"))
_PREPARING = frozenset(rules.words("preparing"))   # for what has the date
_STATUS = frozenset(rules.words("status"))
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
    head, form = next(((match, form) for form in rules.HEADS if (match := form.pattern.match(clause))), (None, None))
    if head is None or form is None:
        return None
    who, rest = "I" if head["who"] == "we" else head["who"], clause[head.end():]
    first = who == "I" and not named
    past = head.groupdict().get("past") or ""
    verb = rules.BASE[past] if past else head["verb"]
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
        if rules.DANGLING.search(thing) or _IDIOM.match(thing) or (light and not _DETERMINED.match(thing)):
            return None
    elif not phrasal and light and base not in _MOTION:
        return None
    called = _CALLED.match(rest)
    if thing and not called and not _is_definite(thing):
        return None
    segments, rest = _segments(rest[called.end():].strip() if called else rest)
    if not rules.STOPPED.match(rest):
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
        for kind, pattern, question, weight in rules.SEGMENTS:
            if found := pattern.match(rest):
                kept = kind in _KEPT and not rules.DANGLING.search(found[0]) and _is_definite(found[0].split(" ", 1)[1])
                segments.append(_Segment(kind, found[0], found.groupdict().get("answer") or "", question, weight, kept))
                rest = rest[found.end():].strip()
                break
        else:
            break
    return segments, rest


def events(clause: str, time: str, named: bool) -> Iterator[StatedFact]:
    """Yield what a clause with a head says: the name and number of its object, its segments, and the object."""
    event = _event(clause, time, named)
    if event is None:
        return
    thing, kept = event.thing, event.around()
    if event.name and event.past and thing:
        own = event.base in ("adopt", "get", "have", "buy") and re.search(rf"{rules.PETS}$", thing)
        yield StatedFact(f"What is {_DETERMINER.sub('my ', thing)} called?" if own else
                   f"What is the name of {_DETERMINER.sub('the ', thing)} that {event.who} {event.past}?",
                   event.name, "name", event.weight + 1)
    if _MONEY.match(thing) and kept:
        yield StatedFact(_join("How much", event.auxiliary, event.verb, *kept) + "?", thing, "amount", event.weight)
    spell = event.base == "spend" and _SPELL.fullmatch(thing)
    if spell and kept:
        yield StatedFact(_join("How long", event.auxiliary, event.verb, *kept) + "?", thing, "duration", event.weight)
    if _MONEY.match(thing) or (thing and not _is_definite(thing)):
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


def _join(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _is_definite(phrase: str) -> bool:
    """Return whether a noun phrase names its thing: "the gym" does not, "the gym in Rome" and "my gym" do."""
    content = [word for word in re.findall(r"[\w'-]+", phrase.lower()) if word not in rules.VAGUE]
    return bool(content) and (not phrase.startswith("the ") or len(content) > 1 or phrase[4:5].isupper())
