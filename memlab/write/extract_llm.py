"""Facts, entities and relationships by a chat model: one request a session, as RAG Memory Provider v1 asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.chat import Chat, Message, Prompt
from memlab.replies import MARGIN, tell, trimmed
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.extract_prompt import ASKED, INSTRUCTION, SCHEMA, extract, reading
from memlab.write.facts import Extract, Talk
from memlab.write.facts_chunked import Chunked
from memlab.write.facts_placed import READS, WRITES, Into, check, written

LEAST = 64
"""Tokens of a conversation below which asking makes no sense."""


@stage
class LLMExtract:
    """Extract by a chat model what a session says, once whatever the number of haystacks that it lies in.

    The prompt bears neither date nor id; times stay in the facts as they were said. A session that the model's window
    does not hold beside the longest reply (``max_tokens``) is asked about in parts, and a turn that is longer than a
    part is cut. Of a reply that was cut off, the whole items count. What could not be read stays as its raw memories.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    chat: Chat
    into: Into = "keys"
    dated: bool = True
    chunked: Chunked | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 1024

    def __post_init__(self) -> None:
        check(self.into, self.chunked)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return memories, entities and links; warns of what was cut, split or unreadable."""
        return written(tables, lambda known: self.extracts(known, store), self.into, self.dated, self.chunked)

    def extracts(self, known: Sequence[Talk], store: Store) -> list[Extract]:
        """Extract from each session what it says."""
        room = self.chat.window - self.max_tokens - MARGIN - self.chat.count(INSTRUCTION + ASKED)
        if room < LEAST:
            raise MemlabError(f"a window of {self.chat.window} tokens leaves {max(room, 0)} for a conversation beside "
                              f"the instruction and a reply of {self.max_tokens}", where="write/extract",
                              fix="serve the model with a longer context (chat.window), or lower max_tokens")
        split = [self._parts(talk, room) for talk in known]
        parts = [(talk, part) for talk, some in zip(known, split) for part in some]
        tell(sum(len(some) > 1 for some in split), len(known),
             "sessions were asked about in parts, since the model's window does not hold them")
        asked = [self._lines(talk, part, room) for talk, part in parts]
        tell(sum(cut for _, cut in asked), len(parts), "parts of sessions hold one turn that was cut to the model's "
             "window")
        replies = store.completions(self.chat, [
            Prompt((Message("system", INSTRUCTION), Message("user", ASKED.format(turns=turns))), schema=SCHEMA,
                   max_tokens=self.max_tokens) for turns, _ in asked])
        read = [reading(reply) for reply in replies]
        tell(sum(said is None for said, _ in read), len(read),
             "extractions could not be read; those turns keep their raw memories")
        tell(sum(cut for _, cut in read), len(read), "extractions were cut off at max_tokens; what was whole is kept")
        found = iter([Extract(unread=(*part,)) if said is None else extract(said, talk, part)
                      for (said, _), (talk, part) in zip(read, parts)])
        return [_joined([next(found) for _ in some]) for some in split]

    def _parts(self, talk: Talk, room: int) -> list[range]:
        """Split a session's turns (positions) into parts that fit, in order; a turn too long is a part."""
        costs = [self.chat.count(_line(talk, p)) for p in range(len(talk))]
        if sum(costs) <= room:
            return [range(len(talk))] if any(said.text.strip() for said in talk) else []
        parts, start, spent = [], 0, 0
        for p, cost in enumerate(costs):
            if spent + cost > room and p > start:
                parts.append(range(start, p))
                start, spent = p, 0
            spent += cost
        return [*parts, range(start, len(talk))]

    def _lines(self, talk: Talk, part: range, room: int) -> tuple[str, bool]:
        """Return the numbered turns of a part, and whether they had to be cut."""
        whole = "".join(_line(talk, p) for p in part)
        if len(part) == 1 and self.chat.count(whole) > room:
            return trimmed(self.chat, whole, room), True
        return whole, False


def _line(talk: Talk, position: int) -> str:
    return f"{position + 1}. {talk[position].line}\n"


def _joined(parts: Sequence[Extract]) -> Extract:
    """Put together what was extracted from the parts of a session."""
    facts = {f.text.casefold(): f for one in reversed(parts) for f in reversed(one.facts)}
    return Extract(tuple(reversed(facts.values())), tuple(e for one in parts for e in one.entities),
                   tuple(dict.fromkeys(r for one in parts for r in one.links)),
                   tuple(p for one in parts for p in one.unread))
