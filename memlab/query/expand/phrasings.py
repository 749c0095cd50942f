"""Noun phrases for common forms of questions: "How long is my commute?" as "duration of commute".

MemoryStack prints the two phrases for a commute as its example of expansion by rule; the other forms are ours.
"""

from __future__ import annotations

import re

_NOUNS = dict(re.findall(r"(\w+)/([\w ]+)", """
far/distance to, old/age of, tall/height of, high/height of, heavy/weight of, big/size of, large/size of, wide/width of,
deep/depth of, fast/speed of, hot/temperature of, expensive/price of, loud/volume of"""))
"""Adjective -> the noun of "How old is my cat?"."""

_TIMES = dict(re.findall(r"(\w+)/([\w ]+)", """
commute/travel time to work, drive/driving time, flight/flight time, walk/walking time, ride/travel time,
trip/travel time, journey/travel time, shift/working hours, workday/working hours, wait/waiting time,
run/running time, workout/exercise time"""))
"""Thing -> the usual name of its duration; "length of" it for all others."""

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
    (rf"how (?P<adjective>{'|'.join(_NOUNS)}) {_BE} {_WHAT}", ("{noun} {what}",)),
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
            time = _TIMES.get(_HEAD.search(what.lower())[0], f"length of {what}")  # type: ignore[index]
            noun = _NOUNS.get((match.groupdict().get("adjective") or "").lower(), "")
            return [phrase.format(what=what, time=time, noun=noun) for phrase in phrases]
    return []
