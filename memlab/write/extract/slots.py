"""Sentences and their typed slots: preferences, dates, amounts, counts, events, and what someone has or is."""

from __future__ import annotations

import re

from memlab.write.extract.base import Category

_END = re.compile(r"[.!?\u3002\uff01\uff1f][\"')*\u201d]*(?:(?<=[\u3002\uff01\uff1f])|\s+(?=[^\sa-z]))")
_SHORT = re.compile(r"(?:\b[A-Z]|\b(?:Dr|Mr|Ms|St|Mrs|e\.g|i\.e))\.\Z")
_MARKUP = re.compile(r"[\s>#*\u2022+-]*(?:\d{1,2}[.)]\s+)?")
_WORDS = re.compile(r"\w")

_NUMBER = r"(?:\d{1,4}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|dozens?)"
_MONTH = (r"(?:January|February|March|April|June|July|August|September|October|November|December|"
          r"(?:in|of|last|next|this|early|late|mid|since|until|by|for|\d{1,2}(?:st|nd|rd|th)?) May|May (?=\d))")
_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_SPAN = r"(?:second|minute|hour|day|night|week|weekend|month|year|decade)"
_ADVERBS = (r"(?: (?:just|really|finally|also|already|actually|even|recently|still|always|absolutely|totally|"
            r"definitely|especially|particularly|do|did|don't|didn't|never|currently|now|usually|mostly|once))*")
_PAST = (r"(?:adopted|applied|arrived|ate|attended|baked|became|been|began|booked|bought|broke|built|called|came|"
         r"caught|celebrated|changed|completed|cooked|decided|donated|drove|earned|enrolled|enjoyed|fell|felt|finished|"
         r"flew|found|gave|got|graduated|grew|had|helped|hiked|hosted|hurt|joined|launched|learned|left|lost|made|met|"
         r"moved|ordered|organized|painted|participated|passed|picked|planned|planted|played|practiced|presented|"
         r"published|quit|raised|ran|read|received|redeemed|returned|sang|saw|sent|set|shared|showed|signed|sold|"
         r"spent|spoke|started|stopped|studied|submitted|swam|switched|talked|taught|told|took|traveled|travelled|"
         r"tried|turned|upgraded|used|visited|volunteered|walked|watched|went|won|worked|wrote)")

# in a run of digits, points and commas the first digit that begins a word stands for all: each would be read to its end
_FIGURE = r"(?<![\d,.])(?:(?!\b\d)[\d,.])*+\d[\d,.]*+"

_LOWERED: tuple[tuple[Category, str], ...] = (
    ("preference", rf"\b(?:i|we){_ADVERBS} (?:love|like|enjoy|prefer|adore|hate|dislike|loved|liked|hated|"
                   rf"can't stand|cannot stand)\b|\bi(?:'m| am){_ADVERBS} (?:into|fond of|a (?:\w+ )?fan of|"
                   r"allergic to|obsessed with|keen on|crazy about)\b|\bmy fav(?:ou?rite)?\b|^lov(?:e|ing) (?!you)"),
    ("amount", r"[$\u20ac\u00a3\u00a5]\s?\d|" + _FIGURE + r"(?:\s?%|[\s-]?(?:percent|dollars?|bucks|euros?|pounds?|"
               r"lbs?|kgs?|kilos?|kilograms?|grams?|miles?|km|kilomet(?:er|re)s?|met(?:er|re)s?|feet|foot|inch(?:es)?|hours?|"
               r"hrs?|minutes?|mins?|gallons?|lit(?:er|re)s?|cups?|degrees|acres?|calories|[gt]b)\b)"),
    ("date", rf"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|past|coming|every|other) (?:few )?(?:{_SPAN}s?|"
             rf"morning|evening|afternoon|summer|spring|autumn|fall|winter|christmas)|{_SPAN}s? ago)\b"),
    ("count", rf"\b{_NUMBER} (?:\w+ )?(?:[a-z]{{2,}}s|people|children|men|women)\b|\b(?:twice|(?:first|second|third|"
              r"fourth|fifth|\d+th) time)\b|\b(?:a )?couple of \w+"),
    ("event", rf"\b(?:i|we)(?:'ve|'d| have| had)?{_ADVERBS} {_PAST}\b|\b(?:i'm|i am|we're|we are|i've been|i have been)"
              rf"{_ADVERBS} (?:going|planning|thinking|starting|working|taking|training|learning|moving|getting|saving|"
              r"looking forward)\b"),
    ("other", rf"\bmy (?:[\w'-]+ ){{1,4}}?(?:is|are|was|were|has|have|had|will)\b|\bi(?:'m| am| was){_ADVERBS} "
              rf"(?:an?|from|in|at|the|married|single|vegan|vegetarian)\b|\b(?:i|we){_ADVERBS} (?:live|work|study|own|"
              r"have|need|want|play|teach|speak|drive)\b"),
)
_SLOTS = tuple((name, re.compile(pattern)) for name, pattern in _LOWERED)
_DATE = re.compile(  # with capitals: "May" is a month, "may" is not
    rf"\b{_MONTH}\b|\b{_DAY}\b|\b(?:19|20)\d\d\b|\b\d{{1,2}}/\d{{1,2}}\b|\b\d{{1,2}}(?::\d\d)? ?[AaPp]\.?[Mm]\b")

ABOUT_OTHERS: frozenset[Category] = frozenset({"date", "amount", "count"})
"""Slots that count for each speaker; the others are about the person who says "I"."""


def sentences(text: str) -> list[str]:
    """Split a turn into sentences, without the marks of lists and headings.

    >>> sentences("Hi Dr. Ray! I moved.\\n* **Rome**: sunny. ok")
    ['Hi Dr. Ray!', 'I moved.', 'Rome: sunny. ok']
    """
    out = []
    for line in text.replace("\u2019", "'").replace("**", "").replace("`", "").split("\n"):
        start = _MARKUP.match(line).end()  # type: ignore[union-attr]  # it matches the empty string too
        for end in _END.finditer(line, start):
            if not _SHORT.search(line, max(end.start() - 4, start), end.start() + 1):
                out.append(line[start : end.end()].strip())
                start = end.end()
        out.append(line[start:].strip())
    return [part for part in out if _WORDS.search(part)]


def category(sentence: str, about_speaker: bool = True) -> Category | None:
    """Return the first slot that a sentence fills, or None; a question fills none.

    Without ``about_speaker`` (an assistant's turn) only ``ABOUT_OTHERS`` count.

    >>> [category(s) for s in ("I love tea.", "It cost $5.", "We met in May 2020.", "I have two cats.", "I quit.",
    ...                        "My dog is old.", "Nice!", "Do I love tea?")]
    ['preference', 'amount', 'date', 'count', 'event', 'other', None, None]
    """
    if sentence.endswith("?"):
        return None
    lowered = sentence.lower()
    for name, slot in _SLOTS:
        if (about_speaker or name in ABOUT_OTHERS) and (
                slot.search(lowered) or (name == "date" and _DATE.search(sentence))):
            return name
    return None
