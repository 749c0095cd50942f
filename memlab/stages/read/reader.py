"""The reader: a chat model that answers each question from its context, and the choice among several samples."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Annotated, ClassVar, Protocol, runtime_checkable

import polars as pl
from pydantic import Field, model_validator

from memlab.models.protocols import Chat, Completion, Message, Prompt
from memlab.pipeline.question_types import FALLBACK, check_classes, first_of
from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import SESSION, Notes, Tables, add_texts, frame, with_text
from memlab.stages.read.prompt import Item, OneReader, PromptRouter, PromptTemplate
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.text.display import replace_surrogates
from memlab.support.text.normalise import normalise_vote

Temperature = Annotated[float, Field(gt=0, le=2)]


@runtime_checkable
class Vote(Protocol):
    """The samples for a question of some class, and the rule that picks the answer."""

    def schedule(self, kind: str) -> tuple[float | None, ...]:
        """Return the temperature of each sample for a question of this class; None for the model's own."""

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the answer that counts; there is one answer per sample."""


@stage
class Single:
    """One reply, which is the answer."""

    samples: ClassVar = 1
    temperature: ClassVar = None

    def schedule(self, kind: str) -> tuple[float | None, ...]:  # noqa: ARG002
        """Return one sample at the model's own temperature."""
        return (None,)

    def decide(self, answers: Sequence[str]) -> int:  # noqa: ARG002
        """Return 0."""
        return 0


@stage
class SelfConsistency:
    """The most frequent answer of several samples (Wang et al., Self-Consistency, ICLR 2023).

    Answers are the same if their words and numbers are, apart from case, articles and punctuation. The earliest of
    equally frequent ones wins, so without any agreement it is the first sample. Blank answers do not count unless all
    are blank. With ``classes`` only questions of these classes (query/classify; ``multi_session`` counts as
    ``counting``) are asked several times, all others once.
    """

    samples: Annotated[int, Field(ge=2)] = 5
    temperature: Temperature = 0.7  # the paper's for most models; at 0 all samples are alike
    # one per sample, in place of samples and temperature, e.g. [0.3, 0.7, 1.0]
    temperatures: Annotated[tuple[Temperature, ...], Field(strict=False)] = ()
    classes: Names = ()  # classes of questions that are voted on; empty: all

    @model_validator(mode="after")
    def _more_than_one(self) -> SelfConsistency:
        if len(self.temperatures) == 1:
            raise ValueError("one temperature makes no vote; give at least two, or none")
        check_classes({f"read.vote.classes[{i}]": name for i, name in enumerate(self.classes)})
        return self

    def schedule(self, kind: str) -> tuple[float | None, ...]:
        """Return the temperatures of the samples, or one sample at the model's own for other classes.

        >>> SelfConsistency(temperatures=(0.3, 1.0), classes=("counting",)).schedule("multi_session")
        (0.3, 1.0)
        """
        if self.classes and kind not in self.classes and FALLBACK.get(kind) not in self.classes:
            return (None,)
        return self.temperatures or (self.temperature,) * self.samples

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the first answer of the largest group.

        >>> SelfConsistency(samples=3).decide(["Two cats.", "three cats", "Three cats!"])
        1
        """
        forms = [normalise_vote(answer) for answer in answers]
        votes = Counter(form for form in forms if form) or Counter(forms)
        return forms.index(max(votes, key=lambda form: votes[form]))


INCOMPLETE = "answers are empty or incomplete, and are judged as they are"
"""The note that counts them in the manifest of a run."""
PER_MESSAGE = 8
"""Tokens that a chat template puts around a message: 4 to 6 in those of Qwen, Llama, Gemma and gpt-oss."""
PER_PROMPT = 80
"""Tokens that it adds once per prompt: the opening of the reply, and its own words (gpt-oss: about 70, Qwen: 25)."""


def prompt_tokens(chat: Chat, messages: Sequence[Message]) -> int:
    """Count a prompt's tokens with the model's own counter, and an upper estimate of the chat template's."""
    return PER_PROMPT + sum(PER_MESSAGE + chat.count(message.content) for message in messages)


def prompt_room(chat: Chat, max_tokens: int | None) -> int:
    """Return how many tokens a prompt may have so that the longest reply still fits."""
    return chat.window - (max_tokens or chat.max_tokens)


def count_fitting(total: int, item: Callable[[int], int], whole: Callable[[int], int], room: int) -> int:
    """Return how many of the first items fit: the largest n with ``whole(n) <= room``, or 0.

    ``item(i)`` is the number of tokens of item i alone. Their sum gives a first guess at n, so that a long context is
    not counted again and again. It differs a little from the tokens of the joined text, so ``whole(n)`` decides.

    >>> count_fitting(3, lambda i: 5, lambda n: 10 + 6 * n, 22)
    2
    """
    spent, n = whole(0), 0
    while n < total and (spent := spent + item(n)) <= room:
        n += 1
    while n and whole(n) > room:
        n -= 1
    while n < total and whole(n + 1) <= room:
        n += 1
    return n


@dataclass(frozen=True)
class QuestionPrompts:
    """The prompts for one question, one per sample, their template, and how many context items did not fit."""

    question: int
    template: PromptTemplate
    prompts: tuple[Prompt, ...]
    dropped: int


@stage
class Reader:
    """Answer every question only from its context and the day it is asked on; no id is shown.

    A context that is too long for the model's window loses its last rows (the packs sort rows by priority) until the
    prompt and the longest reply fit. All questions are asked in one call.

    An answer is what follows a model's thinking. A reply that is empty, cut off or withheld has no vote unless all are
    so; answers that come from one are counted in a note.

    ``answers`` holds for each question the final answer as sample 0, with the tokens and seconds of all samples
    together, and then every reply as it came, reasoning included, as samples 1, 2, ... Their tokens are null, so that
    a sum over rows counts nothing twice. With ``chat.logprobs`` every row has the log-probability of its reply, sample
    0 that of the reply which the vote chose.
    """

    reads: ClassVar = ("context", "texts", "questions", "units", "sessions", "classes")
    writes: ClassVar = ("answers", "texts")

    chat: Chat
    prompt: PromptTemplate
    vote: Vote = Field(default_factory=Single)
    agents: PromptRouter = Field(default_factory=OneReader)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the answers and the texts that they need."""
        return self.ask(tables, store)

    def ask(self, tables: Tables, store: Store, sample: int = 0) -> Tables:
        """Ask all questions; another ``sample`` asks for new replies, independent of sample 0."""
        notes, requests = Notes(), self.build_prompts(tables, sample)
        replies = iter(store.completions(self.chat, [p for request in requests for p in request.prompts], notes))
        texts, unmarked, incomplete = list[str](), 0, 0
        rows: list[tuple[int | float | None, ...]] = []
        for request in requests:
            completions = [next(replies) for _ in request.prompts]
            samples = [replace_surrogates(completion.text) for completion in completions]
            replied = [replace_surrogates(completion.answer) for completion in completions]
            answers = [request.template.parse(text) for text in replied]
            unmarked += sum(not request.template.has_mark(text) for text in replied)
            whole = [answer if c.fault is None else "" for answer, c in zip(answers, completions)]
            chosen = self.vote.decide(whole if any(whole) else answers)  # an incomplete reply has no vote
            incomplete += completions[chosen].fault is not None or not answers[chosen]
            texts += [answers[chosen], *samples]
            likely = [completion.logprob for completion in completions]
            rows += [(request.question, 0, *_cost(completions), request.dropped, likely[chosen])]
            rows += [(request.question, i, None, None, None, request.dropped, logprob)
                     for i, logprob in enumerate(likely, start=1)]
        notes.warn(incomplete, len(requests), f"{INCOMPLETE}; "
                   "chat.max_tokens (or read.prompt.max_tokens) leaves more room, which a model that thinks needs")
        notes.add(unmarked, sum(len(r.prompts) for r in requests), "replies lack the mark before the answer")
        names: tuple[str, ...] = ("question", "sample", "prompt_tokens", "completion_tokens", "seconds", "dropped")
        names += ("logprob",) if getattr(self.chat, "logprobs", False) else ()
        columns: dict[str, object] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        if "logprob" in columns:
            columns["logprob"] = pl.Series([row[-1] for row in rows], dtype=pl.Float64)
        ids, all_texts = add_texts(tables["texts"], texts)
        return Tables(answers=frame("answers", {**columns, "text_id": ids}), texts=all_texts, notes=notes.table())

    def build_prompts(self, tables: Tables, sample: int = 0) -> list[QuestionPrompts]:
        """Build the prompts for each question; raise MemlabError if a template alone is longer than the window."""
        contexts, classes = _contexts(tables), first_of(tables["classes"])
        count = functools.cache(self.chat.count)
        questions = with_text(tables["questions"], tables["texts"]).select("question", "text", "asked_on")
        built = []
        for question, text, asked_on in questions.iter_rows():
            kind, context = classes.get(question, ""), contexts.get(question, [])
            template = self.agents.template(kind, self.prompt)
            messages, dropped = self._fit_to_window(template, text, asked_on, context, count)
            temperatures = self.vote.schedule(kind)
            first = sample * len(temperatures)  # no reply is shared between samples
            prompts = tuple(Prompt(messages, sample=first + i, temperature=temperature, max_tokens=template.max_tokens)
                            for i, temperature in enumerate(temperatures))
            built.append(QuestionPrompts(question, template, prompts, dropped))
        return built

    def _fit_to_window(self, template: PromptTemplate, question: str, asked_on: datetime | None,
                       context: list[tuple[int, Item]], count: Callable[[str], int]) -> tuple[tuple[Message, ...], int]:
        """Return the messages with as many context items as fit, and how many did not."""
        room = prompt_room(self.chat, template.max_tokens)

        def messages(kept: int, text: str = question) -> tuple[Message, ...]:
            items = [item for _, item in sorted(context[:kept], key=itemgetter(0))]
            return template.messages(text, asked_on, items)

        if (least := prompt_tokens(self.chat, messages(0, ""))) > room:
            raise MemlabError(f"the prompt's own words take {least} tokens, but a window of {self.chat.window} leaves "
                              f"{room} beside the reply", where="read/answer",
                              fix="serve the model with a longer context (chat.window), or allow shorter replies "
                                  "(max_tokens of chat or read/prompt)")
        n = count_fitting(len(context), lambda i: count(context[i][1].text),
                          lambda kept: prompt_tokens(self.chat, messages(kept)), room)
        return messages(n), len(context) - n


def _contexts(tables: Tables) -> dict[int, list[tuple[int, Item]]]:
    """Return (position, item) of the context of each question, in the order of priority."""
    dates = tables["units"].select("unit", *SESSION).join(
        tables["sessions"], on=SESSION, how="left").select("unit", "said_on")
    rows = with_text(tables["context"], tables["texts"]).join(dates, on="unit", how="left", maintain_order="left")
    contexts: dict[int, list[tuple[int, Item]]] = {}
    for question, position, text, said_on in rows.select("question", "position", "text", "said_on").iter_rows():
        contexts.setdefault(question, []).append((position, Item(text, said_on)))
    return contexts


def _cost(replies: list[Completion]) -> tuple[int, int, float]:
    return (sum(r.prompt_tokens for r in replies), sum(r.completion_tokens for r in replies),
            sum(r.seconds for r in replies))
