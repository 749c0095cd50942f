"""HyDE: an invented passage that would answer the question, as a further query.

Gao, Ma, Lin, Callan: Precise Zero-Shot Dense Retrieval without Relevance Labels, ACL 2023. There the passages replace
the question; here they are queries of kind "hyde", which ``rank/score`` ranks as lanes of their own.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.query.decompose.base import QueryAdder
from memlab.query.expand.rules import Weight, add_paraphrases, distinct, question_texts
from memlab.query.expand.statement import statement
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables
from memlab.text.fence import NOTE, fence_data
from memlab.text.unicode import printable_line

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
    """Add the statement that would answer a question, without the answer, by rules (memlab.query.expand.statement)."""

    weight: Weight = 1.0  # among hyde queries; rank.score.weights.hyde weighs their lanes

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries and their statements (kind "hyde")."""
        return add_paraphrases(tables, lambda text: distinct(text, [statement(text)], 1), self.weight, KIND)
