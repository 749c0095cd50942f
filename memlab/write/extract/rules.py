"""Facts, entities and relationships without a model: sentences that fill a slot, capitals, a few verbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.chunk.turns import EVERYONE, Roles
from memlab.write.extract.base import Category, Extract, ExtractedFact, Link, Source, Talk, clean
from memlab.write.extract.chunked import Chunked, cuts
from memlab.write.extract.entities import entities, names
from memlab.write.extract.placement import READS, WRITES, Into, check, written
from memlab.write.extract.relations import links
from memlab.write.extract.slots import category, sentences

LONGEST = 400
"""Characters of a sentence: what goes on longer without an end is cut into several."""


@stage
class RulesExtract:
    """Extract by rules: a fact is a sentence of these roles that fills a slot, with its speaker before it.

    English only: of another language little is found, and its sessions keep their raw memories. Names are taken from
    users alone, since assistants write headings in capitals.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    into: Into = "keys"  # replace: in the raw memories' place; merge: into their keys
    dated: bool = True  # [YYYY-MM-DD] of the session before the fact in the key; the reader sees the day anyway
    chunked: Chunked | None = None  # rules_chunked, llm_chunked: joined and cut, with into: replace alone
    roles: Roles = EVERYONE  # whose turns are read; [user]: a third of the facts on LongMemEval-S

    def __post_init__(self) -> None:
        check(self.into, self.chunked)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return memories, entities and links."""
        return written(tables, self.extracts, self.into, self.dated, self.chunked)

    def extracts(self, known: Sequence[Talk]) -> list[Extract]:
        """Extract from each session what it says."""
        return [self._extract(talk) for talk in known]

    def _extract(self, talk: Talk) -> Extract:
        heard = [(p, said, whole[a:b].strip()) for p, said in enumerate(talk) if said.role in self.roles
                 for whole in sentences(said.text) for a, b in cuts(whole, LONGEST, 0)]
        told = [(said.name, sentence) for _, said, sentence in heard if said.role == "user"]
        speakers = list(dict.fromkeys(said.speaker for said in talk if said.speaker))
        known = names(told, speakers)
        at: dict[tuple[str, Category, str], list[int]] = {}
        found: dict[Link, None] = {}
        for p, said, sentence in heard:
            own = said.role == "user"
            found.update(dict.fromkeys(links(sentence, said.name, known, own)))
            slot = category(sentence, own)
            if slot is not None:
                fact = f"{said.name}: {clean(sentence)}"
                at.setdefault((fact, slot, said.role), []).append(p)
        facts = tuple(ExtractedFact(fact, tuple(dict.fromkeys(turns)), slot, cast(Source, role))
                      for (fact, slot, role), turns in at.items())
        return Extract(facts, tuple(entities(told, speakers, known)), tuple(found))
