"""Facts, entities and relationships without a model: sentences that fill a slot, capitals, a few verbs."""

from __future__ import annotations

from typing import cast

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.unicode import printable_line
from memlab.write.chunk.turns import EVERYONE, Roles
from memlab.write.extract.base import Category, Extract, ExtractedFact, Link, Source, Talk, distinct_talks
from memlab.write.extract.chunked import cuts
from memlab.write.extract.entities import entities, names
from memlab.write.extract.placement import Extractor
from memlab.write.extract.relations import links
from memlab.write.extract.slots import category, sentences

LONGEST = 400
"""Most characters of a sentence: a longer one is cut into several."""


@stage
class RulesExtract(Extractor):
    """Extract by rules: a fact is a sentence of these roles that fills a slot, with the speaker's name before it.

    English only: sessions in other languages yield few facts and keep their raw memories. Names are taken from users
    only, since assistants write headings in capitals.
    """

    roles: Roles = EVERYONE  # roles to extract from; [user]: a third of the facts on LongMemEval-S

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return memories, entities and links."""
        talks, places = distinct_talks(tables)
        return self.place(tables, talks, places, [self._extract(talk) for talk in talks])

    def _extract(self, talk: Talk) -> Extract:
        spoken = [(p, turn, sentence[a:b].strip()) for p, turn in enumerate(talk) if turn.role in self.roles
                  for sentence in sentences(turn.text) for a, b in cuts(sentence, LONGEST, 0)]
        lines = [(turn.name, sentence) for _, turn, sentence in spoken if turn.role == "user"]
        speakers = list(dict.fromkeys(turn.speaker for turn in talk if turn.speaker))
        people = names(lines, speakers)
        positions: dict[tuple[str, Category, str], list[int]] = {}
        relations: dict[Link, None] = {}
        for p, turn, sentence in spoken:
            own = turn.role == "user"
            relations.update(dict.fromkeys(links(sentence, turn.name, people, own)))
            if slot := category(sentence, own):
                fact = f"{turn.name}: {printable_line(sentence)}"
                positions.setdefault((fact, slot, turn.role), []).append(p)
        facts = tuple(ExtractedFact(fact, tuple(dict.fromkeys(turns)), slot, cast(Source, role))
                      for (fact, slot, role), turns in positions.items())
        return Extract(facts, tuple(entities(lines, speakers, people)), tuple(relations))
