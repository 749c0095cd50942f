"""The graph of named entities as of a question's day, and its neighbourhood of a question.

Nodes are names (case and spaces ignored), from ``entities`` and from the ends of ``links``. As in RAG Memory Provider
v1, entities that the question names are looked up by full name and by words of more than two letters, and the search
goes two hops from them, breadth first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple

import polars as pl

from memlab.pipeline.tables import SESSION, as_of
from memlab.support.text.tokenize import LUCENE_STOP_WORDS, characters

_WORD = re.compile(r"\w+")
_COMMON = frozenset((*LUCENE_STOP_WORDS, "can", "did", "does", "from", "had", "has", "have", "her", "him", "his", "how",
                    "our", "she", "what", "when", "where", "which", "who", "whom", "whose", "why", "you", "your", "i",
                    "my"))
"""Words of any question: they do not match a name by themselves, and a name of such words alone is not matched."""


class Relationship(NamedTuple):
    """A relationship, and its day (the session's, if no other is stated)."""

    source: str
    relation: str
    target: str
    said_on: datetime | None


@dataclass
class Node:
    """A name and its kind as last stated, and the summaries from the sessions, in the order of time."""

    name: str
    kind: str = ""
    summaries: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Neighbourhood:
    """The part of a graph near a question: (name, kind, summary) and relationships, the nearest first."""

    entities: list[tuple[str, str, str]]
    links: list[Relationship]


class Graph:
    """Entities and relationships of one corpus, as stated up to a day.

    Args:
        entities: Rows of ``entities`` of that corpus, in the order of time.
        links: Rows of ``links`` of that corpus, in the order of time. Equal source, relation and
            target are one relationship, as last stated.
    """

    def __init__(self, entities: pl.DataFrame, links: pl.DataFrame) -> None:
        self._nodes: dict[str, Node] = {}
        self._by_words: dict[tuple[str, ...], list[str]] = {}
        latest: dict[tuple[str, str, str], Relationship] = {}
        for name, kind, summary in entities.select("name", "kind", "summary").iter_rows():
            node = self._node(name)
            node.name, node.kind = name, kind
            if summary and summary not in node.summaries:
                node.summaries.append(summary)
        for key, node in self._nodes.items():
            words = _words(node.name)
            single = [(word,) for word in words if len(word) > 2 and word not in _COMMON]
            for at in dict.fromkeys([tuple(words), *single] if {*words} - _COMMON else []):
                self._by_words.setdefault(at, []).append(key)
        for row in links.select("source", "relation", "target", "said_on").iter_rows():
            link = Relationship(*row)
            key3 = (_key(link.source), _key(link.relation), _key(link.target))
            latest.pop(key3, None)  # a repeated one moves to the end
            latest[key3] = link
        self._edges: dict[str, list[tuple[str, Relationship]]] = {}
        for (source, _, target), link in reversed(latest.items()):  # the newest first
            self._edges.setdefault(source, []).append((target, link))
            self._edges.setdefault(target, []).append((source, link))
            self._node(link.source)
            self._node(link.target)

    def names_in(self, text: str) -> list[str]:
        """Return the entities that a text names, full names before words of names, in the order of the text.

        >>> people = pl.DataFrame({"name": ["Ann Lee", "Lee"], "kind": ["person"] * 2, "summary": ["", ""]})
        >>> links = pl.DataFrame(schema=["source", "relation", "target", "said_on"])
        >>> Graph(people, links).names_in("Where did LEE meet Ann?")
        ['lee', 'ann lee']
        """
        words = _words(text)
        longest = max(map(len, self._by_words), default=0)
        parts = [tuple(words[i : i + n]) for i in range(len(words)) for n in range(longest, 0, -1)]
        matches = [(part != tuple(_words(key)), i, key) for i, part in enumerate(parts)
                   for key in self._by_words.get(part, ())]
        return list(dict.fromkeys(key for *_, key in sorted(matches)))

    def distances(self, text: str, hops: int) -> dict[str, int]:
        """Return the entities within ``hops`` relationships of those that a text names, with their distance."""
        distances = dict.fromkeys(self.names_in(text), 0)
        front = list(distances)
        for hop in range(1, hops + 1):
            reached = dict.fromkeys(other for key in front for other, _ in self._edges.get(key, ())
                                    if other not in distances)
            distances |= dict.fromkeys(reached, hop)
            front = list(reached)
        return distances

    def near(self, text: str, hops: int = 2, most_entities: int = 10, most_links: int = 20, chars: int = 500
             ) -> Neighbourhood:
        """Walk ``hops`` breadth first from the entities that a text names, the newest relationships first.

        The summaries of an entity are joined and cut at ``chars``. A name that is only the end of a relationship is
        walked through, and not listed.
        """
        seen = dict.fromkeys(self.names_in(text))
        links: dict[Relationship, None] = {}
        front: Sequence[str] = list(seen)
        for _ in range(hops):
            reached: dict[str, None] = {}
            for key in front:
                for other, link in self._edges.get(key, ()):
                    links.setdefault(link)
                    if other not in seen:
                        reached.setdefault(other)
            seen.update(reached)
            front = list(reached)
        listed = [self._nodes[key] for key in seen if self._nodes[key].kind][:most_entities]
        return Neighbourhood([(n.name, n.kind, " ".join(n.summaries)[:chars].rstrip()) for n in listed],
                    list(links)[:most_links])

    def _node(self, name: str) -> Node:
        return self._nodes.setdefault(_key(name), Node(name))


def graphs(entities: pl.DataFrame, links: pl.DataFrame, sessions: pl.DataFrame, questions: pl.DataFrame
           ) -> Iterator[tuple[int, Graph]]:
    """Yield (question, the graph of its corpus as of its day) for all questions; equal ones are one object.

    The day of the session counts, whatever day a relationship states. A session without a date is always visible, and
    a question without one sees everything.
    """
    days = sessions.select(*SESSION, pl.col("said_on").dt.date().alias("day"))
    parts = []
    for table in (entities, links):
        dated = table.with_row_index("row").join(days, on=SESSION, how="left").sort(
            "corpus", "day", "session", "row", nulls_last=False)
        parts.append(dated.partition_by("corpus", as_dict=True))
    nothing = [entities.clear(), links.clear()]
    built: dict[tuple[int, date | None], Graph] = {}
    for question, corpus, asked in questions.select("question", "corpus", pl.col("asked_on").dt.date()).iter_rows():
        if (corpus, asked) not in built:
            seen = as_of("day", pl.lit(asked, pl.Date))
            rows = [part[(corpus,)].filter(seen) if (corpus,) in part else none for part, none in zip(parts, nothing)]
            built[corpus, asked] = Graph(*rows)
        yield question, built[corpus, asked]


def _words(text: str) -> list[str]:
    return [part for word in _WORD.findall(text.casefold()) for part in characters(word)]


def _key(name: str) -> str:
    return " ".join(name.casefold().split())
