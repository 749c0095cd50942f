"""OltraMem's write side: the persons that pronouns mean, appended to the memories, alone or before the dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.stage import stage
from memlab.store import Store
from memlab.systems.oltramem.coreference import WORDS, resolve_pronouns
from memlab.tables import SESSION, Tables, with_text
from memlab.write.anchor import Into, ResolveDates, append_notes, note, split_notes


@stage
class ResolvePronouns:
    """Append the persons that pronouns mean, by ``memlab.systems.oltramem.coreference``: ``[she = Julia; you = Bob]``.

    A memory gets the pronouns of its turns that are in its text and mean a single person whom the text does not name.
    """

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    into: Into = "key_and_value"  # values are shown only with rank.score.level=memory
    reach: Annotated[int, Field(ge=0)] = 3  # turns after which a person is forgotten; later, another is often meant
    speakers: bool = True  # resolve "I" and "you" too, where speakers have names

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with their pronouns resolved."""
        memories, texts = tables["memories"], tables["texts"]
        persons = self._persons(tables)
        for column in ("key_id", "value_id") if self.into == "key_and_value" else ("key_id",):
            rows = with_text(memories, texts, column).select("text", *SESSION, "turns")
            notes = [_pronoun_note(split_notes(text)[0], [persons.get((corpus, session, turn), {}) for turn in turns])
                     for text, corpus, session, turns in rows.iter_rows()]
            memories, texts = append_notes(memories, texts, column, pl.Series(notes, dtype=pl.String))
        return Tables(memories=memories, texts=texts)

    def _persons(self, tables: Tables) -> dict[tuple[int, int, int], dict[str, str]]:
        """Return the persons that the pronouns of each turn mean; each distinct session is read once."""
        sessions = with_text(tables["turns"], tables["texts"]).sort(*SESSION, "turn").group_by(
            SESSION, maintain_order=True).agg("turn", "speaker", "text")
        resolve = cache(lambda turns: resolve_pronouns(turns, self.reach))
        persons_of = {}
        for corpus, session, turns, speakers, texts in sessions.iter_rows():
            for turn, persons in zip(turns, resolve(tuple(zip(speakers, texts)))):
                persons_of[corpus, session, turn] = persons if self.speakers else {
                    pronoun: name for pronoun, name in persons.items() if pronoun not in ("I", "you")}
        return persons_of


def _pronoun_note(text: str, turns: Sequence[dict[str, str]]) -> str | None:
    """Return the note on the pronouns in a text, if the turns agree and the text does not name the person."""
    names: dict[str, set[str]] = {}
    for persons in turns:
        for pronoun, name in persons.items():
            names.setdefault(pronoun, set()).add(name)
    agreed = {pronoun: several.pop() for pronoun, several in names.items() if len(several) == 1}
    return note((pronoun, name) for pronoun, name in agreed.items()
                if WORDS[pronoun].search(text) and not re.search(rf"\b{re.escape(name)}\b", text))


@stage
class ResolveBoth:
    """Append the persons of pronouns, then dates: the write side of OltraMem."""

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    coref: ResolvePronouns = Field(default_factory=ResolvePronouns)
    dates: ResolveDates = Field(default_factory=ResolveDates)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories with pronouns and dates resolved."""
        return self.dates.run(tables.updated(self.coref.run(tables, store)), store)
