"""Query expansion by a chat model: paraphrases, the variants of RAG-fusion, and HyDE's invented passage.

HyDE: Gao, Ma, Lin, Callan, Precise Zero-Shot Dense Retrieval without Relevance Labels, ACL 2023. There the passages
replace the question; here they are queries of kind "hyde", which ``rank/score`` ranks as lanes of their own.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memlab.models.protocols import Chat, Message, Prompt
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Notes, Tables
from memlab.pipeline.transcript import NOTE, fence_data
from memlab.stages.query.decompose import QueryAdder, ask_for_queries
from memlab.stages.query.expand_rules import (
    Most,
    Weight,
    add_paraphrases,
    distinct,
    question_texts,
    rewrites,
    statement,
)
from memlab.store import Store
from memlab.support.text.display import printable_line

_REPLY = ' Keep every name, number and date. Reply as JSON: {"queries": ["...", "..."]}.'

INSTRUCTIONS = {
    "paraphrase": "You help to search a person's past conversations. Put the question into other words, {most} times: "
                  "the same meaning, but words that the person may have used when they told of it.",
    "fusion": "You help to search a person's past conversations. Write {most} different search queries for the "
              "question, each from another side of it: what was done, with whom or where, what came of it.",
}
"""The task of the model, by mode."""


@stage
class LLMExpand(QueryAdder):
    """Add at most ``most`` queries that a chat model writes.

    ``paraphrase`` keeps the meaning, ``fusion`` asks for other sides of the question (RAG-fusion: Raudaschl, 2023).
    Up to ``synonyms`` rewrites by rules (``memlab.stages.query.expand_rules``) precede them. An unreadable reply is
    counted
    and adds nothing.
    """

    chat: Chat
    mode: Literal["paraphrase", "fusion"] = "paraphrase"
    most: Most = 3  # queries per question
    weight: Weight = 0.5
    synonyms: Annotated[int, Field(ge=0)] = 0  # rewrites by rules
    max_tokens: Annotated[int, Field(ge=1)] = 256  # per reply: three questions in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries and their paraphrases (kind "wording"); warn of replies that could not be read."""
        notes, questions = Notes(), question_texts(tables)
        system = INSTRUCTIONS[self.mode].format(most=self.most) + _REPLY
        rewordings = ask_for_queries(
            store, self.chat, system, questions, self.max_tokens, notes,
            "rewordings could not be read; those questions have none by the model")

        def paraphrase(text: str) -> list[str]:
            by_model = distinct(text, rewordings.get(text, []), self.most)
            return distinct(text, [*rewrites(text, self.synonyms), *by_model], self.synonyms + self.most)

        return add_paraphrases(tables, paraphrase, self.weight, "wording").updated({"notes": notes.table()})


KIND = "hyde"

INSTRUCTION = """You are given a question about a person's past conversations. Write what the person may have said \
when they told of it: two or three sentences in their own voice that would answer the question. Make up what you \
cannot know. Keep the names of the question. Write nothing else, and name no date that the question does not name."""


@stage
class HyDE(QueryAdder):
    """Add a passage that a chat model invents; an empty one is counted and adds nothing."""

    chat: Chat
    weight: Weight = 1.0  # among hyde queries; rank.score.weights.hyde weighs their lanes
    max_tokens: Annotated[int, Field(ge=1)] = 128  # per reply: two or three sentences

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries and their passages (kind "hyde"); warn of empty replies."""
        notes, questions = Notes(), question_texts(tables)
        replies = store.completions(self.chat, [
            Prompt((Message("system", f"{INSTRUCTION}\n{NOTE}"), Message("user", fence_data({"QUESTION": text}))),
                   max_tokens=self.max_tokens) for text in questions], notes)
        passages = {text: printable_line(reply.answer) for text, reply in zip(questions, replies)}
        notes.warn(list(passages.values()).count(""), len(questions),
                   "passages are empty; those questions are searched for alone")
        added = add_paraphrases(tables, lambda text: distinct(text, [passages[text]], 1), self.weight, KIND)
        return added.updated({"notes": notes.table()})


@stage
class RuleHyDE(QueryAdder):
    """Add the statement that would answer a question, without the answer, by rules
    (memlab.stages.query.expand_rules)."""

    weight: Weight = 1.0  # among hyde queries; rank.score.weights.hyde weighs their lanes

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries and their statements (kind "hyde")."""
        return add_paraphrases(tables, lambda text: distinct(text, [statement(text)], 1), self.weight, KIND)
