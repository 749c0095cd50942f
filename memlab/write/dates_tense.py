"""Whether a sentence speaks of what was, what is to come, or what happens time and again: told by its verbs.

The nearest word that tells it before a place in the sentence counts, else the nearest after it. English only; a
sentence in another language has no tense, and then nothing is resolved that would need one.
"""

from __future__ import annotations

import re

_NOT_PAST = ("need|feed|seed|speed|bleed|breed|indeed|hundred|wed|sacred|exceed|proceed|succeed|weed|greed|excited|"
             "interested|tired|worried|thrilled|overwhelmed|stressed|supposed|limited|recommended|related|based|"
             "detailed|animated|talented|beloved|concerned|dedicated|scheduled|booked|planned|ahead|instead|bed|red|"
             "used|advanced|naked|shed|sled|biased|skilled|united")
_IRREGULAR = ("was|were|wasn't|weren't|did|didn't|had|hadn't|went|gone|got|gotten|bought|saw|seen|took|taken|made|came|"
              "gave|given|told|said|met|found|felt|left|lost|won|ran|ate|drank|wrote|drove|flew|swam|sang|sold|sent|"
              "spent|slept|stood|taught|thought|threw|broke|brought|built|caught|chose|drew|fell|fought|forgot|grew|"
              "heard|held|hid|kept|knew|laid|led|lent|lit|paid|rode|rang|rose|sat|shook|shot|showed|spoke|stole|"
              "stuck|swore|tore|understood|woke|wore|began|became|been|done|hung|dug|fled|used to")
_SAME_FORM = "put|cut|set|read|hit|hurt|quit|cost|spread|split|shut|let|beat|bet|burst"
_WHO = "i|we|he|she|they|it|who|you"
_PLANS = ("plan(?:s|ning)?|planned for|hop(?:e|ing)|looking forward|can't wait|excited (?:to|for)|needs? to|"
          "ha(?:ve|s) to|should|might|(?-i:may)|would (?:like|love)|'d (?:like|love)|about to|upcoming|coming up|"
          "(?:scheduled|due|booked|set) for|thinking (?:of|about)|considering|intend|prepar(?:e|ing) for|"
          "get(?:ting)? ready|sign(?:ing)? up|remind|see you|let's|let us|wants? to|wanna|gonna|going to|will|won't|"
          "'ll|can|could")
_TIMETABLE = "starts?|begins?|opens?|ends?|leaves?|arrives?|closes?|expires?|runs out|there'?s|there (?:is|are)"
_HAS = rf"(?:{_WHO})(?:'ve got| have| has|'s got) (?:a|an|my|our|the|another|two|three|some|plans)"
_BE = (r"\b(?:(?-i:am)|is|are|isn't|aren't|(?:it|that|what|when|where|he|she|who|here)'s(?! (?:been|got)\b))\b|"
       r"'(?:m|re)\b")
_HABIT = ("best time|takes? place|time to visit|every|each|usually|always|often|typically|generally|normally|"
          "sometimes|once an?|twice an?|times an?|whenever|regularly|tends? to|during peak")
_CUE = re.compile(
    rf"(?P<habit>\b(?:{_HABIT})\b)|(?P<future>\b(?:{_PLANS})\b|'ll\b|\b(?:{_TIMETABLE})\b|\b{_HAS}\b)|(?P<is>{_BE})|"
    rf"(?P<past>\b(?:{_IRREGULAR})\b|\b(?:{_WHO}) (?:just |also |finally |then )?(?:{_SAME_FORM})\b|"
    rf"(?<!\bget )(?<!\bbe )(?<!\bgetting )(?<!\bbeing )\b(?!(?:{_NOT_PAST})\b)[a-z]+ed\b)", re.IGNORECASE)
_END = re.compile(r"[.!?;]+[\"')\]*]*\s|\s[-\u2013\u2014]\s|\n")
_FAR = 300  # characters: no verb further away is asked
_ABBREVIATED = re.compile(r"\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Dr|Mrs?|Ms|St|vs|a\.m|p\.m)\.\s$")


def tense(line: str, start: int, end: int) -> str | None:
    """Return past, future, is (a plain present of "to be"), habit or None for what stands at line[start:end].

    >>> line = "I bought it on Friday! We will paint it on Sunday. The shop opens late on Mondays"
    >>> [tense(line, at, at) for at in (15, 40, 75)]
    ['past', 'future', 'future']
    """
    left, right = _bounds(line, start, end)
    cues = list(_CUE.finditer(line, left, start))
    cue = cues[-1] if cues else _CUE.search(line, end, right)
    return cue.lastgroup if cue else None


def _bounds(line: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentence around a place begins and ends."""
    left = max(0, start - _FAR)
    for stop in _END.finditer(line, left, start):
        if not _ABBREVIATED.search(line[max(0, stop.end() - 6) : stop.end()]):
            left = stop.end()
    right = min(len(line), end + _FAR)
    for stop in _END.finditer(line, end, right):
        if not _ABBREVIATED.search(line[max(0, stop.end() - 6) : stop.end()]):
            return left, stop.start()
    return left, right
