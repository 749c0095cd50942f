"""Extraction by rules: names, relationships, and sentences that fill a typed slot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Notes
from memlab.stages.write import extract
from memlab.stages.write.chunk import EVERYONE, Roles
from memlab.store import Store
from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE
from memlab.support.text.display import printable_line

WORDS = {name: frozenset(words.split())
         for name, words in read_yaml(PACKAGE / "stages" / "write" / "words.yaml").items()}
"""Sets of words, which that file explains."""

SUMMARY = 200
"""Most characters in the summary of a name."""

_NO_PART = WORDS["not_names"] | WORDS["lower"]
_WORD = r"[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f][\w'&-]*"
_NAME_SPAN = re.compile(rf"(?<![\w'-]){_WORD}(?: (?:(?:of|the|de|la|van|von) )?{_WORD})*")

_AT = re.compile(r"\b(?:in|to|from|near|around|across|visit|visited|visiting|toward|towards)(?: the)? $")
_WORKS = re.compile(r"\bwork(?:s|ed|ing)? (?:at|for|with)(?: the)? $|\bjob at(?: the)? $")
_WITH = re.compile(rf"\b(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er) (?:\w+ )?(?:{'|'.join(sorted(WORDS['kin']))}),? $|"
                   r"\b(?:named|called|[Hh]ey|[Hh]i|[Tt]hanks|[Dd]r\.|[Mm]rs?\.|[Mm]s\.|met|told|asked)[ ,]*$")
_SAYS = re.compile(r"^ (?:said|says|told|and I|is my|loves|likes|thinks|wants|asked|called|graduated|got married)\b")


def spans(sentence: str, names: frozenset[str] = frozenset()) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start, end) of capitalised names in a sentence.

    The first word of a sentence belongs to a name only if it is one of ``names``, or the words after it are none.

    >>> [name for name, *_ in spans("Yesterday I met Emma at Golden Gate Park in May.")]
    ['Emma', 'Golden Gate Park']
    """
    for match in _NAME_SPAN.finditer(sentence):
        words, start = match[0].split(" "), match.start()
        opens = _opens(sentence, start)
        extra = opens and len(words) > 1 and _bare(" ".join(words[1:])) in names and _bare(match[0]) not in names
        while words and (extra or words[0] in _NO_PART):
            start += len(words.pop(0)) + 1
            opens = extra = False
        while words and words[-1] in _NO_PART:
            words.pop()
        name = _bare(" ".join(words))
        if len(name) > 1 and not (opens and len(words) == 1 and name not in names):
            yield name, start, start + len(name)


def _opens(sentence: str, start: int) -> bool:
    return not sentence[:start].strip("\"'( ")


def _bare(name: str) -> str:
    return re.sub(r"(?:'s|'|-)$", "", name)


def names(lines: Sequence[tuple[str, str]], speakers: Iterable[str]) -> frozenset[str]:
    """Return the names in the (speaker, sentence) pairs of a session: speakers, and capitals within sentences."""
    return frozenset(speakers) | frozenset(name for _, sentence in lines for name, start, _ in spans(sentence)
                                           if not _opens(sentence, start))


def entities(lines: Sequence[tuple[str, str]], speakers: Iterable[str], names: frozenset[str]) -> list[extract.Entity]:
    """Return the names in (speaker, sentence) pairs of a session: speakers first, then in order of appearance.

    Kind: a person for speakers; else that of most mentions ("at Emma's University", "my sister Emma", "in Rome"), an
    object if none decides. Summary: the first sentences that mention the name.
    """
    votes: dict[str, Counter[extract.Kind]] = {name: Counter({"person": 1_000}) for name in speakers}
    mentions: dict[str, list[str]] = {name: [] for name in votes}
    for who, sentence in lines:
        for name, start, end in spans(sentence, names):
            votes.setdefault(name, Counter())[_kind(name, sentence[:start], sentence[end:])] += 1
            summary, line = mentions.setdefault(name, []), f"{who}: {sentence}"
            if line not in summary and sum(map(len, summary)) < SUMMARY:
                summary.append(line)
    return [extract.Entity(name, _majority(votes[name]), " ".join(summary)[:SUMMARY])
            for name, summary in mentions.items()]


def _kind(name: str, before: str, after: str) -> extract.Kind:
    words = name.split(" ")
    if words[-1] in WORDS["organization"] or _WORKS.search(before):
        return "organization"
    if words[-1] in WORDS["location"] or words[0] in WORDS["location"]:
        return "location"
    if _WITH.search(before) or _SAYS.search(after):
        return "person"
    return "location" if _AT.search(before) else "object"


def _majority(votes: Counter[extract.Kind]) -> extract.Kind:
    ranked = sorted((-n, kind) for kind, n in votes.items() if kind != "object")
    return ranked[0][1] if ranked else "object"


_NAME = r"[A-Z\u00c0-\u00de][\w-]+(?: [A-Z\u00c0-\u00de][\w-]+)?"
_WHO = rf"(?P<who>\bI|\b[Mm]y [a-z]+(?: {_NAME})?|\b{_NAME})"
_FILLERS = r"(?: (?:just|really|also|finally|actually|recently|still|currently|now|always|absolutely))*"
_WHAT = r"(?P<what>[\w'&$-]+(?: [\w'&$-]+){0,5})"

_VERBS: tuple[tuple[str, str], ...] = (
    ("lives in", r"liv(?:e|es|ed|ing) (?:in|near)"),
    ("works at", r"work(?:s|ed|ing)? (?:at|for)"),
    ("married to", r"(?:got )?married to"),
    ("moved from", r"moved(?: here| away| back)? from"),
    ("moved to", r"moved(?: here from [\w' -]{1,40}?| from [\w' -]{1,40}?| back)? to"),
    ("owns", r"(?:owns?|adopted|bought|purchased|got(?= (?:an?|my) new )|"
             rf"(?:have|has)(?= (?:an?|two|three|four) (?:[a-z]+ )?(?:{'|'.join(sorted(WORDS['things']))})\b))"),
    ("likes", r"(?:love|loves|like|likes|enjoy|enjoys|prefer|prefers|adore|adores)"),
    ("dislikes", r"(?:hate|hates|dislike|dislikes|can't stand)"),
)
_PATTERNS = tuple((relation, re.compile(rf"{_WHO}(?:'m|'ve| am| is| was| have| has)?{_FILLERS} (?:{verb})\s+{_WHAT}"))
                  for relation, verb in _VERBS)
_KIN = re.compile(rf"\b[Mm]y (?:[a-z]+ )?(?P<what>{'|'.join(sorted(WORDS['kin']))}),? (?P<who>{_NAME})\b")
_HINT = re.compile(r"\b(?:liv|work|married|move|own|adopt|bought|purch|ha[vs]|got|lov|like|enjoy|prefer|adore|hate|"
                   r"dislike|stand)")


def links(sentence: str, speaker: str, names: frozenset[str], about_speaker: bool = True) -> Iterator[extract.Link]:
    """Yield the relationships in a sentence between the speaker ("I"), the speaker's kin ("my sister"), and ``names``.

    Without ``about_speaker`` (an assistant's turn) "I" and "my" do not count. Questions and negations have no links.

    >>> found = links("I moved from Rome to Oslo with my sister Emma.", "Ann", frozenset())
    >>> [(r.source, r.relation, r.target) for r in found]
    [('Ann', 'moved from', 'Rome'), ('Ann', 'moved to', 'Oslo'), ('Ann', 'has sister', 'Emma')]
    """
    if sentence.endswith("?"):
        return
    if _HINT.search(sentence):
        for relation, pattern in _PATTERNS:
            for match in pattern.finditer(sentence):
                source, target = _source(match["who"], speaker, names, about_speaker), _target(match["what"])
                if source and target:
                    yield extract.Link(source, relation, target)
    if about_speaker and "my " in sentence.lower():
        for match in _KIN.finditer(sentence):
            if match["who"] not in WORDS["not_names"]:
                yield extract.Link(speaker, f"has {match['what']}", match["who"])


def _source(who: str, speaker: str, names: frozenset[str], about_speaker: bool) -> str | None:
    if who == "I":
        return speaker if about_speaker else None
    if who[:3].lower() == "my ":
        return f"{speaker}'s {who[3:]}" if about_speaker else None
    return who if who in names else None


def _target(what: str) -> str:
    words = what.split(" ")
    while words and words[0].lower() in WORDS["opening"]:
        words.pop(0)
    if words and words[0].lower() in WORDS["empty"]:
        return ""
    end = next((i for i, word in enumerate(words) if word.lower() in WORDS["stop"]), len(words))
    return re.sub(r"(?:'s|'|-)$", "", " ".join(words[:end][:4]))


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

_LOWERED: tuple[tuple[extract.Category, str], ...] = (
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

ABOUT_OTHERS: frozenset[extract.Category] = frozenset({"date", "amount", "count"})
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


def category(sentence: str, about_speaker: bool = True) -> extract.Category | None:
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


LONGEST = 400
"""Most characters of a sentence: a longer one is cut into several."""


@stage
class RulesExtract(extract.Extractor):
    """Extract by rules: a fact is a sentence of these roles that fills a slot, with the speaker's name before it.

    English only: sessions in other languages yield few facts and keep their raw memories. Names are taken from users
    only, since assistants write headings in capitals.
    """

    roles: Roles = EVERYONE  # roles to extract from; [user]: a third of the facts on LongMemEval-S

    def extracts(self, talks: Sequence[extract.Talk], store: Store, notes: Notes) -> list[extract.Extract]:  # noqa: ARG002
        """Return the extract of each distinct session."""
        return [self._extract(talk) for talk in talks]

    def _extract(self, talk: extract.Talk) -> extract.Extract:
        spoken = [(p, turn, sentence[a:b].strip()) for p, turn in enumerate(talk) if turn.role in self.roles
                  for sentence in sentences(turn.text) for a, b in extract.cuts(sentence, LONGEST, 0)]
        lines = [(turn.name, sentence) for _, turn, sentence in spoken if turn.role == "user"]
        speakers = list(dict.fromkeys(turn.speaker for turn in talk if turn.speaker))
        people = names(lines, speakers)
        positions: dict[tuple[str, extract.Category, extract.Source], list[int]] = {}
        relations: dict[extract.Link, None] = {}
        for p, turn, sentence in spoken:
            own = turn.role == "user"
            relations.update(dict.fromkeys(links(sentence, turn.name, people, own)))
            if slot := category(sentence, own):
                fact = f"{turn.name}: {printable_line(sentence)}"
                positions.setdefault((fact, slot, turn.role), []).append(p)
        facts = tuple(extract.ExtractedFact(fact, tuple(dict.fromkeys(turns)), slot, role)
                      for (fact, slot, role), turns in positions.items())
        return extract.Extract(facts, tuple(entities(lines, speakers, people)), tuple(relations))
