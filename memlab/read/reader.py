"""Contexts to answers: every question is put to a reader, with as much of its context as its window holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import ClassVar

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.chat.protocol import Chat, Completion, Message, Prompt
from memlab.question_types import first_of
from memlab.read.prompt import Agents, Item, OneReader, PromptTemplate
from memlab.read.vote import Single, Vote
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Notes, Tables, add_texts, frame, with_text
from memlab.text.unicode import replace_surrogates

PER_MESSAGE = 8
"""Tokens that a chat template puts around a message: 4 to 6 in those of Qwen, Llama, Gemma and gpt-oss."""
PER_PROMPT = 80
"""Tokens that it adds once: the opening of the reply, and words of its own (gpt-oss: about 70, Qwen: about 25)."""


def prompt_tokens(chat: Chat, messages: Sequence[Message]) -> int:
    """Count what a prompt costs by the model's own counter, the chat template's share estimated from above."""
    return PER_PROMPT + sum(PER_MESSAGE + chat.count(message.content) for message in messages)


def room(chat: Chat, max_tokens: int | None) -> int:
    """Return how many tokens a prompt may have so that the longest reply still fits."""
    return chat.window - (max_tokens or chat.max_tokens)


def fits_first(total: int, item: Callable[[int], int], whole: Callable[[int], int], space: int) -> int:
    """Return how many of the first items fit: the largest n with ``whole(n) <= space``, or 0.

    ``item(i)`` are the tokens of item i alone: a guess at n, so that a long context is not counted over and over;
    the tokens of a whole differ a little from the sum of its parts, so ``whole(n)`` has the last word.

    >>> fits_first(3, lambda i: 5, lambda n: 10 + 6 * n, 22)
    2
    """
    spent, n = whole(0), 0
    while n < total and (spent := spent + item(n)) <= space:
        n += 1
    while n and whole(n) > space:
        n -= 1
    while n < total and whole(n + 1) <= space:
        n += 1
    return n


@dataclass(frozen=True)
class Question:
    """What a prompt is made of beside the context: the words, the day and the class ("" for none)."""

    question: int
    text: str
    asked_on: datetime | None
    kind: str


@dataclass(frozen=True)
class Asked:
    """What is sent for one question: a prompt a sample, its template, and how many items had no room."""

    question: int
    template: PromptTemplate
    prompts: tuple[Prompt, ...]
    dropped: int


@stage
class Reader:
    """Answer every question from its context, the day it is asked on and nothing else; no id is shown.

    A context that is too long for the model's window loses its last rows (``memlab.read.pack``: rows lie in the order
    of what must stay) until the prompt and the longest reply fit. All questions are asked in one call.

    ``answers`` has, a question, the answer that counts as sample 0, with the tokens and seconds of all samples
    together, and after it every reply as it came, reasoning included, as samples 1, 2, ...: their tokens are null,
    since row 0 counts them, so that a sum over rows counts nothing twice.
    """

    reads: ClassVar = ("context", "texts", "questions", "units", "sessions", "classes")
    writes: ClassVar = ("answers", "texts")

    chat: Chat
    prompt: PromptTemplate
    vote: Vote = Field(default_factory=Single)
    agents: Agents = Field(default_factory=OneReader)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the answers and the texts that they need."""
        return self.ask(tables, store)

    def prompts(self, tables: Tables, sample: int = 0) -> list[Prompt]:
        """Return every prompt that ``ask`` sends, in its order: questions as in ``questions``, samples adjoining."""
        return [prompt for asked in self.asked(tables, sample) for prompt in asked.prompts]

    def ask(self, tables: Tables, store: Store, sample: int = 0) -> Tables:
        """Ask all questions; another ``sample`` asks the same anew, independently of the replies to sample 0."""
        notes, asked = Notes(), self.asked(tables, sample)
        replies = iter(store.completions(self.chat, [prompt for a in asked for prompt in a.prompts], notes))
        said, bare = list[str](), 0
        rows: list[tuple[int | float | None, ...]] = []
        for one in asked:
            got = [next(replies) for _ in one.prompts]
            replied = [replace_surrogates(reply.text) for reply in got]
            answers = [one.template.parse(text) for text in replied]
            bare += sum(not one.template.marked(text) for text in replied)
            said += [answers[self.vote.decide(answers)], *replied]
            rows += [(one.question, 0, *_cost(got), one.dropped)]
            rows += [(one.question, i, None, None, None, one.dropped) for i in range(1, len(got) + 1)]
        notes.add(bare, sum(len(a.prompts) for a in asked), "replies lack the mark before the answer")
        names = ("question", "sample", "prompt_tokens", "completion_tokens", "seconds", "dropped")
        made = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        ids, texts = add_texts(tables["texts"], said)
        return Tables(answers=frame("answers", {**made, "text_id": ids}), texts=texts, notes=notes.table())

    def unmarked(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unmarked) of ``answers``: whether a reply lacked the answer mark, so that all of it counts.

        Reads answers, texts and classes.
        """
        kinds = first_of(tables["classes"])
        worded = {q: self.agents.template(kinds.get(q, ""), self.prompt) for q in tables["answers"]["question"]}
        replies = with_text(tables["answers"].filter(pl.col("sample") > 0), tables["texts"]).select("question", "text")
        missing = [not worded[q].marked(text) for q, text in replies.iter_rows()]
        return replies.select("question", pl.Series("unmarked", missing, pl.Boolean)).group_by(
            "question", maintain_order=True).agg(pl.col("unmarked").any())

    def asked(self, tables: Tables, sample: int = 0) -> list[Asked]:
        """Build what is sent for each question; raise MemlabError if a template alone is longer than the window."""
        contexts, kinds = _contexts(tables), first_of(tables["classes"])
        count = functools.cache(self.chat.count)
        return [self._put(Question(question, text, asked_on, kinds.get(question, "")),
                          contexts.get(question, []), sample, count)
                for question, text, asked_on in
                with_text(tables["questions"], tables["texts"]).select("question", "text", "asked_on").iter_rows()]

    def _put(self, one: Question, context: list[tuple[int, Item]], sample: int,
             count: Callable[[str], int]) -> Asked:
        template = self.agents.template(one.kind, self.prompt)
        space = room(self.chat, template.max_tokens)

        def put(kept: int, text: str = one.text) -> tuple[Message, ...]:
            items = [item for _, item in sorted(context[:kept], key=itemgetter(0))]
            return template.messages(text, one.asked_on, items)

        if (least := prompt_tokens(self.chat, put(0, ""))) > space:
            raise MemlabError(f"the prompt's own words take {least} tokens, but a window of {self.chat.window} leaves "
                              f"{space} beside the reply", where="read/answer",
                              fix="serve the model with a longer context (chat.window), or allow shorter replies "
                                  "(max_tokens of chat or read/prompt)")
        n = fits_first(len(context), lambda i: count(context[i][1].text),
                       lambda kept: prompt_tokens(self.chat, put(kept)), space)
        first = sample * self.vote.samples  # every sample of a repetition is asked anew
        prompts = tuple(Prompt(put(n), sample=first + i, temperature=self.vote.temperature,
                               max_tokens=template.max_tokens) for i in range(self.vote.samples))
        return Asked(one.question, template, prompts, len(context) - n)


def _contexts(tables: Tables) -> dict[int, list[tuple[int, Item]]]:
    """Return, a question, (position, item) of its context, in the order of what must stay."""
    dated = tables["units"].select("unit", "corpus", "session").join(
        tables["sessions"], on=SESSION, how="left").select("unit", "said_on")
    rows = with_text(tables["context"], tables["texts"]).join(dated, on="unit", how="left", maintain_order="left")
    found: dict[int, list[tuple[int, Item]]] = {}
    for question, position, text, said_on in rows.select("question", "position", "text", "said_on").iter_rows():
        found.setdefault(question, []).append((position, Item(text, said_on)))
    return found


def _cost(replies: list[Completion]) -> tuple[int, int, float]:
    return (sum(r.prompt_tokens for r in replies), sum(r.completion_tokens for r in replies),
            sum(r.seconds for r in replies))
