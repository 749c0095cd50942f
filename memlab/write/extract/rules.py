"""Facts, entities and relationships without a model: sentences that fill a slot, capitals, a few verbs."""

from __future__ import annotations

from typing import cast

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.chunk.turns import EVERYONE, Roles
from memlab.write.extract.base import Category, Extract, ExtractedFact, Link, Source, Talk, clean, talks
from memlab.write.extract.chunked import cuts
from memlab.write.extract.entities import entities, names
from memlab.write.extract.placement import Extractor
from memlab.write.extract.relations import links
from memlab.write.extract.slots import category, sentences

LONGEST = 400
"""Most characters of a sentence: a longer one is cut into several."""


@stage
class RulesExtract(Extractor):
    """Extract by rules: a fact is a sentence of these roles that fills a slot, with its speaker before it.

    English only: sessions in other languages yield few facts and keep their raw memories. Names are taken from users
    only, since assistants write headings in capitals.
    """

    roles: Roles = EVERYONE  # whose turns are read; [user]: a third of the facts on LongMemEval-S

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return memories, entities and links."""
        sessions, slots = talks(tables)
        return self.placed(tables, sessions, slots, [self._extract(talk) for talk in sessions])

    def _extract(self, talk: Talk) -> Extract:
        heard = [(p, said, whole[a:b].strip()) for p, said in enumerate(talk) if said.role in self.roles
                 for whole in sentences(said.text) for a, b in cuts(whole, LONGEST, 0)]
        lines = [(said.name, sentence) for _, said, sentence in heard if said.role == "user"]
        speakers = list(dict.fromkeys(said.speaker for said in talk if said.speaker))
        people = names(lines, speakers)
        at: dict[tuple[str, Category, str], list[int]] = {}
        relations: dict[Link, None] = {}
        for p, said, sentence in heard:
            own = said.role == "user"
            relations.update(dict.fromkeys(links(sentence, said.name, people, own)))
            slot = category(sentence, own)
            if slot is not None:
                fact = f"{said.name}: {clean(sentence)}"
                at.setdefault((fact, slot, said.role), []).append(p)
        facts = tuple(ExtractedFact(fact, tuple(dict.fromkeys(turns)), slot, cast(Source, role))
                      for (fact, slot, role), turns in at.items())
        return Extract(facts, tuple(entities(lines, speakers, people)), tuple(relations))
