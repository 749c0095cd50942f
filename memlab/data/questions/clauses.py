"""Facts of one clause, as questions with their answers, by the rules of ``memlab.data.questions.rules``. English only.

A clause has a head (who does what), an object and segments (when, where, with whom, for how much): each segment, a
number in the object, and the object are asked about in the words of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memlab.data.questions import rules
from memlab.data.questions.rules import BASE, pattern, words


@dataclass(frozen=True)
class StatedFact:
    """A question, its answer in the words of the text, the kind of fact, how certain it is, and its sentence."""

    question: str
    answer: str
    kind: str
    weight: float
    sentence: str = ""


_PARTICLE = re.compile(r"(?:up|out|off|down|over|back|away|together|home)\b ?")
_GERUND = re.compile(r"[a-z]{2,14}ing (?=\S)")
_RECEIVER = re.compile(r"(?:me|us|my [a-z]{3,12}) (?=a |an |the |my |some |[A-Z0-9\"$])")
_OBJECT = pattern("({nouns})(?= |$)")
_DETERMINED = pattern('(an?|the|my|our|some|{count}|tickets|married|engaged|promoted|accepted|hired|groceries) |'
                      r'(married|engaged|promoted|tickets|groceries)$|[A-Z"\d]')
_IDIOM = pattern("(a|an|the|my)? ?({idioms})\\b.{0,20}(|day|night|turnout|start|experiences?|people|blast)$|"
                 r".*\b(ton|bunch|couple|number|fun|blast|interest|experiences?)\b")
_CALLED = pattern("(called|named|titled) <answer {title}>")
_COUNTED = pattern(r"<answer {count}> <rest (?!{unit}\b|percent|of\b|%|more\b)([A-Za-z'-]{1,20} ){0,4}"
                   "([a-z]{2,20}s|people|children|women|men|fish)(?= of |$).{0,60}>")
_INFINITIVE = pattern(
    r"to ({bases}|be|ensure|avoid|improve|know|think|figure)\b|to (?!(an?|the|my|our|some)\b)[a-z]+ "
    r"(an?|the|my|our|some|up|off|out|for|in|on|with|more|money|awareness)\b")
_DETERMINER = re.compile(r"^(?:an?|the|my|our|some) ")
_MONEY, _FIXED, _OFTEN, _SPELL = pattern("{money}"), pattern("{fixed}"), pattern("{often}"), pattern("{length}")
_WITHIN = re.compile(r"in (?:\d|an?|one|two|three)\b")
_PERSON, _PET = pattern("my {kin}$"), pattern("{pets}$")
_STOPPED = pattern(r"({stops}|to)(?![\w'-])|$")
"""What may follow what was read of a clause; after anything else the clause was not understood."""

_GERUND_OF = {f"{base.removesuffix('e')}ing": base for base in BASE.values()}
_KEPT = ("person", "source", "place", "occasion", "other")
_BELONGS = {"person": ("other", "source"), "place": ("other",), "source": ("other", "place")}


class _Segment(NamedTuple):
    kind: str
    text: str
    answer: str
    question: str
    kept: bool   # it may stand in the questions about other parts


class _Event(NamedTuple):
    who: str
    auxiliary: str
    base: str       # of the last verb: "buy" of "planning to buy"
    verb: str       # as a question has it: "get back", "planning to buy"
    past: str       # "got back"; empty if the clause is not in the past
    thing: str
    called: str     # the words of "called Rex"
    name: str
    segments: list[_Segment]

    def around(self, without: Collection[int] = ()) -> list[str]:
        """Return the segments that a question keeps, but for those that it asks about."""
        return [segment.text for n, segment in enumerate(self.segments) if segment.kept and n not in without]

    def fact(self, question: str, answer: str, kind: str, weight: float = 0) -> StatedFact:
        """Return a fact of this event: what was done is more certain than what is planned."""
        return StatedFact(question, answer, kind, weight + (3 if self.past else 2))


def _event(clause: str, time: str, named: bool) -> _Event | None:
    """Return the parts of a clause with a head of ``HEADS``; None if it has none, is vague, or is not understood."""
    if (first := rules.first_form(rules.HEADS, clause)) is None:
        return None
    form, head = first
    who, rest = "I" if head["who"] == "we" else head["who"], clause[head.end():]
    past = head.groupdict().get("past") or ""
    verb = BASE[past] if past else head["verb"]
    light, base = verb.split()[-1] in words("light"), _GERUND_OF.get(verb.split()[-1], verb.split()[-1])
    particle = _PARTICLE.match(rest)
    for part in (_PARTICLE, _GERUND if base in words("take_gerund") else None,
                 _RECEIVER if base in words("take_receiver") else None):
        if part and (match := part.match(rest)):
            verb, past, rest = f"{verb} {match[0].strip()}", past and f"{past} {match[0].strip()}", rest[match.end():]
    thing = ""
    if match := _OBJECT.match(rest):
        thing, rest = match[0], rest[match.end():].strip()
        if rules.DANGLING.search(thing) or _IDIOM.match(thing) or (light and not _DETERMINED.match(thing)):
            return None
    elif not particle and light and base not in words("motion"):
        return None
    called = _CALLED.match(rest)
    if thing and not called and not _is_definite(thing):
        return None
    segments, rest = _segments(rest[called.end():].strip() if called else rest)
    if not _STOPPED.match(rest):
        return None
    vague = next((n for n, one in enumerate(segments) if one.kind == "other" and not one.kept), len(segments))
    if vague < len(segments) and (base in words("giving") + words("motion")
                                  or segments[vague].text.startswith(("to ", "into ", "of ", "by "))):
        return None
    segments = segments[:vague]
    if time:
        segments.append(_Segment("time", time, time, "When {did} {core}?", False))
    auxiliary = form.kind if who == "I" and not named else form.question
    return _Event(who, f"{auxiliary} {who}", base, verb, past, thing, called[0] if called else "",
                  called["answer"] if called else "", segments)


def _segments(rest: str) -> tuple[list[_Segment], str]:
    """Return at most six segments at the beginning of a text, and what follows them."""
    segments: list[_Segment] = []
    while rest and len(segments) < 6 and not _INFINITIVE.match(rest):
        if (first := rules.first_form(rules.SEGMENTS, rest)) is None:
            break
        form, found = first
        kept = form.kind in _KEPT and not rules.DANGLING.search(found[0]) and _is_definite(found[0].split(" ", 1)[1])
        segments.append(_Segment(form.kind, found[0], found.groupdict().get("answer") or "", form.question, kept))
        rest = rest[found.end():].strip()
    return segments, rest


def events(clause: str, time: str, named: bool) -> Iterator[StatedFact]:
    """Yield what a clause with a head says: the name and number of its object, its segments, else the object."""
    event = _event(clause, time, named)
    if event is None:
        return
    thing, kept = event.thing, event.around()
    if event.name and event.past and thing:
        own = event.base in ("adopt", "get", "have", "buy") and _PET.search(thing)
        yield event.fact(f"What is {_DETERMINER.sub('my ', thing)} called?" if own else
                         f"What is the name of {_DETERMINER.sub('the ', thing)} that {event.who} {event.past}?",
                         event.name, "name", 1)
    money, spell = _MONEY.match(thing), event.base == "spend" and _SPELL.fullmatch(thing)
    if (money or spell) and kept:
        yield event.fact(_join("How much" if money else "How long", event.auxiliary, event.verb, *kept) + "?", thing,
                         "amount" if money else "duration")
    if money or (thing and not _is_definite(thing)):
        return
    asked = [fact for place in range(len(event.segments)) for fact in _about_segment(event, place)]
    yield from asked
    counted = not spell and _COUNTED.match(thing)
    if counted and (kept or " " in counted["rest"] or event.base not in ("get", "earn", "reach")):
        yield event.fact(_join("How many", counted["rest"], event.auxiliary, event.verb, *kept) + "?",
                         counted["answer"], "number", 1)
    elif not asked and not spell:
        yield from _about_object(event)


def _about_segment(event: _Event, place: int) -> Iterator[StatedFact]:
    """Yield the question about one segment; what belongs to it ("my friends from church") is part of the answer."""
    segment, base = event.segments[place], event.base
    kind, question, answer = segment.kind, segment.question, segment.answer
    before = event.segments[place - 1].kind if place else ""
    after = event.segments[place + 1].text if place + 1 < len(event.segments) else ""
    end = place + 1
    while end < len(event.segments) and event.segments[end].kind in _BELONGS.get(kind, ()):
        answer, end = f"{answer} {event.segments[end].text}", end + 1
    around = event.around([n for n, one in enumerate(event.segments) if place <= n < end or (
        kind == "person" and n > place and one.kind != "other")])
    core, nominal = _join(event.verb, event.thing, *around), _DETERMINER.sub("the ", event.thing)
    moving, back = base in words("motion"), event.verb.endswith(" back")
    if moving and segment.text.startswith("to "):
        kind, answer, question = "place", segment.text, "Where {did} {core}?"
    elif kind == "amount" and event.thing and base in words("buying"):
        question, core = "How much did {who} pay for {core}?", _join(nominal, *around)
    elif kind == "time" and event.past and _WITHIN.match(answer):
        kind, question, answer = "duration", "How long did it take {whom} to {core}?", answer.removeprefix("in ")
    misread = {
        "since": event.past, "frequency": event.past,
        "duration": _OFTEN.match(after) or ("been" in event.verb and re.search("minute|hour", answer)),
        "time": base in words("preparing") and before in ("other", "occasion"),
        "place": back or before in ("source", "place") or (before == "other" and moving and not event.past),
        "source": back or moving or before == "other" or (
            question.startswith("Where") and (base not in words("receiving") or after.startswith("to ")))}
    if question and answer and (event.thing or around or base == "move") and not misread.get(kind):
        whom = "me" if event.who == "I" else event.who
        yield event.fact(question.format(did=event.auxiliary, who=event.who, whom=whom, core=core), answer, kind)


def _about_object(event: _Event) -> Iterator[StatedFact]:
    """Yield the question about the object, if a person or an occasion tells which; "of ..." belongs to it."""
    others = [n for n, one in enumerate(event.segments)
              if one.kind == "other" and not (one.text.startswith("to ") and event.base in words("giving"))]
    around, about = event.around(others), [event.segments[n].text for n in others]
    known = event.thing in words("status") or event.verb in ("planning", "going") or event.verb.endswith(" back")
    if event.thing and not known and others == list(range(len(others))) and (around or event.base in words("telling")):
        person = event.base in ("meet", "marry") or _PERSON.match(event.thing)
        asked, told = (about, []) if person else ([], about)
        yield event.fact(_join("Who" if person else "What", event.auxiliary, event.verb, *asked, *around) + "?",
                         _join(event.thing, event.called, *told), "object", -1)


def _join(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _is_definite(phrase: str) -> bool:
    """Return whether a noun phrase names its thing: "the gym" does not, "the gym in Rome" and "my gym" do."""
    content = [word for word in re.findall(r"[\w'-]+", phrase.lower()) if word not in rules.VAGUE]
    return bool(content) and (not phrase.startswith("the ") or len(content) > 1 or phrase[4:5].isupper())
