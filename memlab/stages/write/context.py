"""Contextual headers of keys: by rules, or the place of a memory in its session by a chat model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.models.chat.replies import MARGIN, trim
from memlab.models.protocols import Chat, Message, Prompt
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Notes, Tables, add_texts, with_text
from memlab.pipeline.transcript import NOTE, TURN_SEPARATOR, fence_data, render_turns
from memlab.store import Store
from memlab.support.text.display import printable_line


@stage
class Header:
    """Put a header before the key (never the value): the baseline for contexts written by a model.

    It has up to four lines: the day, the speakers, the session's first user turn and the turn before the memory. The
    turns are cut, because small encoders read 256-512 tokens, key included.
    """

    reads: ClassVar = ("texts", "sessions", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    date: bool = True  # "Saturday 20 May 2023"
    speaker: bool = True  # the memory's speakers, unless the key begins with them
    first_user_turn: bool = True  # often the topic of the session
    previous_turn: bool = True  # often the question that the memory answers
    max_first_chars: Annotated[int, Field(ge=1)] = 160  # small encoders read 256 tokens, and the key itself must fit
    max_previous_chars: Annotated[int, Field(ge=1)] = 160  # the same

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with new keys."""
        memories = tables["memories"].with_columns(pl.col("turns").list.min().alias("turn"))
        turns = render_turns(tables["turns"], tables["texts"]).with_columns(
            pl.col("speaker").fill_null(pl.col("role")).alias("who"), pl.col("display_text").alias("previous"))
        opening = turns.filter(pl.col("role") == "user").group_by(SESSION, maintain_order=True).agg(
            pl.col("turn").first().alias("first"), pl.col("display_text").first().alias("opening"))
        before = turns.select(*SESSION, "turn", pl.col("previous").shift(1).over(SESSION))  # turn numbers may have gaps
        names = (memories.select("memory", *SESSION, pl.col("turns").alias("turn")).explode("turn")
                 .join(turns.select(*SESSION, "turn", "who"), on=[*SESSION, "turn"], maintain_order="left")
                 .group_by("memory", maintain_order=True)
                 .agg(pl.col("who").unique(maintain_order=True).str.join(" and ")))
        rows = (with_text(memories, tables["texts"], "key_id", "body")
                .join(opening, on=SESSION, how="left", maintain_order="left")
                .join(before, on=[*SESSION, "turn"], how="left", maintain_order="left")
                .join(names, on="memory", how="left", maintain_order="left"))
        speakers = pl.when(~pl.col("body").str.starts_with(pl.col("who") + ":")).then("who")
        first_turn = pl.when(~pl.col("turns").list.contains(pl.col("first"))).then(
            pl.lit("Conversation: ") + pl.col("opening").str.head(self.max_first_chars))
        # the turn before may be the opening
        repeats = pl.lit(self.first_user_turn) & (pl.col("previous") == pl.col("opening"))
        previous = pl.when(~repeats).then(pl.lit("Before: ") + pl.col("previous").str.head(self.max_previous_chars))
        lines = [(self.date, pl.col("said_on").dt.strftime("%A %-d %B %Y")), (self.speaker, speakers),
                 (self.first_user_turn, first_turn), (self.previous_turn, previous)]
        parts = [line for on, line in lines if on] + [pl.col("body")]
        keys = rows.select(pl.concat_str(parts, separator="\n", ignore_nulls=True)).to_series()
        ids, texts = add_texts(tables["texts"], keys)
        return Tables(memories=tables["memories"].with_columns(ids.alias("key_id")), texts=texts)


INSTRUCTION = """You write notes for a search index of conversations. Below is one conversation. You will be \
shown one passage of it. In one or two short sentences, say what the passage is about: who says it, on which \
matter of this conversation, and which person, place or thing words like "it", "there" or "that one" stand for. \
Name names. Use only what the conversation says, add no advice, and do not repeat the passage. Reply with these \
sentences alone.
"""

_LEFT_OUT = "[...]"
ASKED = "{passage}\n\nIts note, in one or two short sentences:"

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)?", re.DOTALL)
_LEAD_IN = re.compile(r"^(?:sure|certainly|of course)\b[,.!]?\s*|"
                      r"^(?:here(?:'s| is| are)\b[^:.]{0,80}|note|context|summary):\s*", re.IGNORECASE)
_REFUSAL = re.compile(r"^(?:(?:i'm|i am) (?:sorry|unable|not able)|sorry\b|i (?:cannot|can't|won't)\b|as an ai\b)",
                      re.IGNORECASE)
_END = re.compile(r"(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)"
                  r"(?<![.!?])[.!?]+[\"')\]]*\s+(?=\S)")


def clean_reply(reply: str, sentences: int, max_words: int) -> str:
    """Return the first sentences of a reply in one line, without control characters; "" for a refusal.

    >>> clean_reply("Sure! Here is the note:\\nAnn saw Dr. Ray\\x1b[31m in Rome.  She liked it. More.", 2, 50)
    'Ann saw Dr. Ray in Rome. She liked it.'
    >>> clean_reply("I'm sorry, but I can't help with that.", 2, 50)
    ''
    """
    text = printable_line(_ESCAPES.sub("", reply)).replace("\u2019", "'")
    for _ in range(2):  # "Sure! Here is the note:"
        text = _LEAD_IN.sub("", text.strip("\"' ")).strip("\"' ")
    if _REFUSAL.search(text):
        return ""
    ends = [m.end() for m in _END.finditer(text)]
    text = text[: ends[sentences - 1]] if len(ends) >= sentences else text
    return " ".join(text.split()[:max_words])


@stage
class LLMContext:
    """One or two sentences by a chat model that situate a memory in its session (Anthropic's "contextual retrieval").

    They are put before the key, and with ``into: key_and_value`` before the value too; a value is shown only where
    memories are ranked (``rank.score.level=memory``). ``header`` puts the rules' header between sentences and key.

    Each distinct passage is one request. The session comes first in the prompt, so that a server's prefix cache reads
    it once for all passages. Its date is left out, since it differs between haystacks (the header has it). If a
    session is too long for the model's window, only the turns around the passage are shown. A memory of a whole session
    gets no context.
    """

    reads: ClassVar = Header.reads
    writes: ClassVar = Header.writes

    chat: Chat
    header: Header | None = None  # llm_header has one
    into: Literal["key", "key_and_value"] = "key"  # key_and_value: the reader sees the sentences too
    sentences: Annotated[int, Field(ge=1)] = 2  # further sentences of a reply are left out
    max_words: Annotated[int, Field(ge=1)] = 60  # small encoders read 256 tokens, and the key itself must fit
    max_tokens: Annotated[int, Field(ge=1)] = 96  # per reply

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return memories with new keys; warn of empty or refused replies, and of sessions that were cut."""
        notes = Notes()
        prompts, prompt_of = self._prompts(tables, notes)
        replies = store.completions(self.chat, prompts, notes)
        contexts = [clean_reply(r.answer, self.sentences, self.max_words) for r in replies]
        notes.warn(contexts.count(""), len(contexts), "contexts came back empty or refused; those keys have none")
        written = pl.DataFrame({"memory": prompt_of.keys(), "context": [contexts[i] for i in prompt_of.values()]},
                               schema={"memory": pl.Int64, "context": pl.String}).filter(pl.col("context") != "")
        if self.header is not None:
            tables = tables.updated(self.header.run(tables, store))
        memories, texts = tables["memories"], tables["texts"]
        situated = memories.join(written, on="memory", how="left", maintain_order="left")
        for column in ("key_id", "value_id") if self.into == "key_and_value" else ("key_id",):
            longer = pl.concat_str("context", "text", separator="\n", ignore_nulls=True)
            ids, texts = add_texts(texts, with_text(situated, texts, column).select(longer).to_series())
            memories = memories.with_columns(ids.alias(column))
        return Tables(memories=memories, texts=texts, notes=notes.table())

    def _prompts(self, tables: Tables, notes: Notes) -> tuple[list[Prompt], dict[int, int]]:
        """Return the distinct prompts, session by session, and the index of each memory's prompt."""
        by_session = render_turns(tables["turns"], tables["texts"]).group_by(SESSION, maintain_order=True)
        sessions = {place[:2]: (place[2], place[3]) for place in by_session.agg("turn", "display_text").iter_rows()}
        prompts: dict[tuple[str, str], int] = {}
        prompt_of: dict[int, int] = {}
        view_of = cache(lambda lines: _View(self.chat, lines, self.max_tokens))
        cut = 0
        memories = with_text(tables["memories"], tables["texts"], "key_id", "key")
        for memory, corpus, session, turns, key in memories.select("memory", *SESSION, "turns", "key").iter_rows():
            numbers, lines = sessions[corpus, session]
            if len(set(turns)) == len(numbers):
                continue
            view = view_of(tuple(lines))
            positions = [numbers.index(turn) for turn in turns]
            prompt = view.prompt(key, min(positions), max(positions))
            if prompt not in prompts:
                prompts[prompt] = len(prompts)
                cut += view.cuts(prompt)
            prompt_of[memory] = prompts[prompt]
        notes.warn(cut, len(prompts), "passages were asked about with only a part of their session, which the model's "
                   "window does not hold")
        return [Prompt((Message("system", s), Message("user", p)), max_tokens=self.max_tokens)
                for s, p in prompts], prompt_of


def _system(conversation: str) -> str:
    return f"{INSTRUCTION}{NOTE}\n\n{fence_data({'CONVERSATION': conversation})}"


class _View:
    """A session in a prompt: the whole, as one string for all its passages, or a part around a passage."""

    def __init__(self, chat: Chat, lines: Sequence[str], reply: int) -> None:
        self._chat, self._lines = chat, lines
        self._whole = _system(TURN_SEPARATOR.join(lines))
        self._room = max(chat.window - reply - MARGIN, 0)
        self._size = chat.count(self._whole)
        self._counts: list[int] = []

    def prompt(self, key: str, first: int, last: int) -> tuple[str, str]:
        """Return the system message (instruction, session) and the question about the passage of these turns."""
        passage = trim(self._chat, key, self._room // 3)
        question = ASKED.format(passage=fence_data({"PASSAGE": passage}))
        room = self._room - self._chat.count(question)
        if self._size <= room:
            return self._whole, question
        return _system(self._around(first, last, room - self._chat.count(_system("")))), question

    def cuts(self, prompt: tuple[str, str]) -> bool:
        """Return whether a prompt shows only a part of the session."""
        return prompt[0] is not self._whole

    def _around(self, first: int, last: int, room: int) -> str:
        """Return as many turns around first..last as fit, nearest first; if these turns do not fit, their beginning."""
        marks = 2 * self._chat.count(_LEFT_OUT + TURN_SEPARATOR)
        self._counts = self._counts or [self._chat.count(line + TURN_SEPARATOR) for line in self._lines]
        size = sum(self._counts[first : last + 1]) + marks
        if size > room:
            return trim(self._chat, TURN_SEPARATOR.join(self._lines[first : last + 1]), room)
        grows = True
        while grows:
            grows = False
            if first > 0 and size + self._counts[first - 1] <= room:
                first, size, grows = first - 1, size + self._counts[first - 1], True
            if last + 1 < len(self._lines) and size + self._counts[last + 1] <= room:
                last, size, grows = last + 1, size + self._counts[last + 1], True
        shown = self._lines[first : last + 1]
        before, after = [_LEFT_OUT] * (first > 0), [_LEFT_OUT] * (last + 1 < len(self._lines))
        return TURN_SEPARATOR.join([*before, *shown, *after])
