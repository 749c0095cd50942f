"""MemoryStack's relations: slots with one value at a time, and edges from each memory to earlier ones.

MemoryStack's worked examples replace one employer, home or favourite by another without denying the old one. The paper
gives the examples, not the patterns; these patterns are ours and English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from memlab.models.protocols import Embedder, Floats, Ints
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.stages.write.contradiction import ADVERBS, WHO, claims, clauses, subject_of, terms_of
from memlab.stages.write.relations import LEAST, READS, Count, Pairs, Share, Timeline, confidence, count_shared
from memlab.store import Store
from memlab.support.foreign import read_yaml

_KINDS = {kind: (frozenset(words["nouns"].split()), frozenset(words["known"].split()))
          for kind, words in read_yaml(Path(__file__).with_name("kinds.yaml")).items()}
"""Kind of favourite -> nouns that name the kind, and values that are known to be of it."""

_FAVOURITE = r"(?:fav(?:ou?rite)?|go-?\s?to|default|usual|(?:top|first|number\sone)\s(?:choice|pick)|number\sone)"
_TAKEN = r"(?:is|are|has\sbecome|have\sbecome|became)(?:\s(?:now|definitely|really|currently|easily|probably|still))*"
_WHEN = r"(?:now|lately|nowadays|currently|instead|recently|by\sfar|these\sdays|at\sthe\smoment|right\snow)"
_KIND = rf"(?:\s(?P<kind>(?!{_WHEN}\b)[\w -]{{1,400}}?))?"
_LEAD = re.compile(rf"^{_WHEN}(?:\s|\W*$)", re.I)
_OWNER = r"(?P<who>[Mm]y|[Oo]ur|(?:[Tt]he\s)?[\w-]+(?:'s))"
_HAVING = re.compile(r"^(?:to\s)?(?:eat|drink|play|listen|cook|order|watch|read|wear)(?:ing)?\s(?:to\s)?", re.I)
_ACTIVITY = re.compile(r"(?:to|\w+ing)\s", re.I)  # "trying new food" is no kind of food
_LATELY = re.compile(r"\b(?:now|these days|lately|nowadays|instead|more|any ?more)\b", re.I)
_PAST_OWNER = re.compile(r"\b(?:old|previous|former|first|ex|childhood)\b", re.I)

_JOB = re.compile(
    rf"^{WHO}{ADVERBS}\s(?:(?:started|begun|began|starting)(?:\s(?:working|work|(?:an?|my)\s(?:new\s)?(?:job|position|role)))?"
    r"\s(?:at|with|for)|(?:switched|changed|moved|switching|changing)\s(?:jobs?|employers?|companies)\s(?:to|from\s.+\sto)|"
    r"(?:got|took|accepted|landed|found)\s(?:an?|my)\s(?:new\s)?(?:job|position|role|offer)\s(?:at|with|from)|"
    r"(?:joined|joining))\s(?P<what>(?:the\s)?[A-Z0-9].*)$")
_NEW_JOB = re.compile(r"^(?P<who>[Mm]y|[Oo]ur)\s(?:new\s|current\s)?(?:job|employer|company)\sis\s(?:at\s|with\s)?"
                      r"(?P<what>[A-Z0-9].*)$")
_MY_FAVOURITE = re.compile(rf"^{_OWNER}\s(?:new\s|current\s)?{_FAVOURITE}{_KIND}\s{_TAKEN}\s"
                           r"(?P<what>.+)$")
_IS_FAVOURITE = re.compile(rf"^(?P<what>.+?)(?:\s{_TAKEN}|'s)\s{_OWNER}\s(?:new\s|current\s|absolute\s)?"
                           rf"{_FAVOURITE}{_KIND}(?:\s{_WHEN})*\W*$")
_SWITCHED = re.compile(rf"^{WHO}{ADVERBS}\s(?:switched|moved|changed)\s(?:over\s)?(?:from\s.+\s)?to\s(?P<what>.+)$")
_PREFERS = re.compile(rf"^{WHO}{ADVERBS}\s(?:prefers?|preferring)\s(?P<what>.+)$")
_LIKES = re.compile(rf"^{WHO}(?>{ADVERBS})\s(?:(?:like|love|enjoy|adore)s?|(?:been\s)?(?:really\s|more\s|much\s)*"
                    r"(?:into|fond\sof|hooked\son|obsessed\swith|crazy\sabout|all\sabout))\s(?P<what>.+)$")


class Value(NamedTuple):
    """The value of a subject's slot, and whether it claims the slot for itself ("I prefer", not "I like")."""

    slot: str
    subject: str
    terms: frozenset[str]
    claims_slot: bool

    def keys(self) -> list[tuple[str, ...]]:
        """Return the keys of which two values must share one to be compared."""
        return [("one value", self.slot, self.subject)]

    def against(self, older: Value) -> bool:
        """Return whether this value takes the place of an older one of the same slot."""
        return self.claims_slot and not self.terms & older.terms


def values(text: str, speaker: str = "user") -> Iterator[Value]:
    """Yield the values of single-valued slots that a text states; "I" and "my" mean the speaker.

    >>> [(v.slot, v.subject, sorted(v.terms)) for v in values("I just started at Google. My favorite food is Thai.")]
    [('work', 'user', ['google']), ('favourite food', 'user', ['thai'])]
    """
    lately = False  # "These days, I love Thai food": said in a clause of its own
    for clause in clauses(text):
        rest = _LEAD.sub("", clause)
        yield from _employer_or_home(clause, speaker)
        yield from _favourite(rest, speaker, lately or rest != clause)
        lately = not rest


def _employer_or_home(clause: str, speaker: str) -> Iterator[Value]:
    if match := _JOB.match(clause) or _NEW_JOB.match(clause):
        yield from _value("work", match["who"], terms_of(match["what"]), True, speaker)
        return
    for claim in claims(clause, speaker):
        if claim.slot in ("work", "home") and claim.holds:
            yield Value(claim.slot, claim.subject, claim.terms, True)


def _favourite(clause: str, speaker: str, lately: bool) -> Iterator[Value]:
    """Yield a favourite; a kind that is not named ("I prefer Thai") is known for the values of ``_KINDS`` alone."""
    if match := _MY_FAVOURITE.match(clause) or _IS_FAVOURITE.match(clause):
        kind, terms = terms_of(match["kind"] or ""), terms_of(match["what"])
        yield from _of_kind(match["who"], kind or _kind_within(terms, match["what"]), terms, True, speaker)
    elif match := _PREFERS.match(clause) or _SWITCHED.match(clause) or _LIKES.match(clause):
        what = _HAVING.sub("", match["what"]).split(" to ")[0].split(" over ")[0].split(" than ")[0]
        weak = match.re is _LIKES and not (lately or _LATELY.search(clause))
        terms = terms_of(what)
        yield from _of_kind(match["who"], _kind_within(terms, what), terms, not weak, speaker)


def _kind_within(terms: frozenset[str], what: str) -> frozenset[str]:
    """Return the kind of an object: of its known value ("Thai"), else its last word ("crime novels")."""
    for kind, (nouns, known) in _KINDS.items():
        if (terms & nouns and not _ACTIVITY.match(what)) or (terms and terms <= known):
            return frozenset({kind})
    words = re.findall(r"(?<![\w'-])[\w'-]*\w", what)
    last = terms_of(words[-1]) if 1 < len(words) <= 3 and not _ACTIVITY.match(what) else frozenset()
    return last & terms


def _of_kind(who: str, kind: frozenset[str], terms: frozenset[str], strong: bool, speaker: str) -> Iterator[Value]:
    for name, (nouns, _) in _KINDS.items():
        if kind & (nouns | {name}):
            kind, terms = frozenset({name}), terms - nouns
    terms = terms - kind
    if kind:
        yield from _value(f"favourite {' '.join(sorted(kind))}", who, terms, strong, speaker)


def _value(slot: str, who: str, terms: frozenset[str], strong: bool, speaker: str) -> Iterator[Value]:
    owner = who.removesuffix("'s")
    subject = speaker.lower() if owner.lower() in ("my", "our") else subject_of(owner, speaker)
    if subject and terms and not _PAST_OWNER.search(owner):
        yield Value(slot, subject, terms, strong)


@stage
class MemoryStack:
    """MemoryStack's relations, to earlier memories of the same corpus and kind.

    * FOLLOWS: the previous memory of the session. Confidence 1.
    * RELATED_TO, SAME_TOPIC: cosine of at least ``related`` and ``same_topic``. The cosine is the confidence.
    * ELABORATES: more characters, and more than ``elaborates`` of the other's key terms. Confidence .8.
    * CONTRADICTS: a denial by templates (``relations.contradiction``), or another value of a slot that has one value at
      a time (``single_value``). The paper gives no confidence; .75 is SUPERSEDES' least.
    * SUPERSEDES: to the same memory as CONTRADICTS (``confidence``).

    ELABORATES, CONTRADICTS and SUPERSEDES need a cosine of at least ``gate``. The paper's own examples of SUPERSEDES
    lie far below its gate with some encoders (.32 to .45 with MiniLM); ``gate: 0`` finds them.

    Templates look at the ``most`` latest statements on the same thing, cosines and terms at the ``most`` nearest
    earlier memories. So edges grow with the memories, not with their square.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("edges",)
    embedder: Embedder
    related: Share = 0.85  # least cosine of RELATED_TO (published)
    same_topic: Share = 0.9  # least cosine of SAME_TOPIC (published)
    gate: Share = 0.85  # least cosine of ELABORATES, CONTRADICTS and SUPERSEDES (published); 0: any
    elaborates: Share = 0.5  # ELABORATES: more than this share of the other's key terms (published)
    elaborates_confidence: Share = 0.8  # published
    most: Count = 20  # earlier memories that each is compared with

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the edges; earlier memories never depend on later ones."""
        timeline = Timeline.of(tables)
        later, earlier, cosine = timeline.near(store, self.embedder, self.most)
        related, topic = cosine >= self.related, cosine >= self.same_topic
        more = self._elaborates(timeline, later, earlier) & self._passes(cosine)
        denied = self._ends(timeline, store)
        return Tables(edges=pl.concat([
            timeline.edges("FOLLOWS", timeline.follows(), 1.0),
            timeline.edges("RELATED_TO", (later[related], earlier[related]), np.clip(cosine[related], 0, 1)),
            timeline.edges("SAME_TOPIC", (later[topic], earlier[topic]), np.clip(cosine[topic], 0, 1)),
            timeline.edges("ELABORATES", (later[more], earlier[more]), self.elaborates_confidence),
            timeline.edges("CONTRADICTS", denied, LEAST),
            timeline.edges("SUPERSEDES", denied, confidence(timeline.gap(*denied))),
        ]))

    def _passes(self, cosine: Floats) -> Any:
        return (cosine >= self.gate) | (self.gate == 0)

    def _ends(self, timeline: Timeline, store: Store) -> Pairs:
        """Return (later, earlier) rows where the later contradicts the earlier, in the order of time."""
        pairs = np.unique(np.concatenate([np.stack(timeline.conflicts(read, self.most), axis=1)
                                          for read in (claims, values)]), axis=0)
        later, earlier = pairs[:, 0], pairs[:, 1]
        kept = self._passes(timeline.cosines(store, self.embedder, (later, earlier)))
        return later[kept], earlier[kept]

    def _elaborates(self, timeline: Timeline, later: Ints, earlier: Ints) -> Any:
        """Return which later rows elaborate the earlier ones, (m,)."""
        length = timeline.texts("value_id").str.len_chars().to_numpy()
        terms = timeline.terms.sum(axis=1)[earlier]
        shared = count_shared(timeline.terms, later, earlier)
        return (length[later] > length[earlier]) & (terms > 0) & (shared > self.elaborates * terms)
