"""MemoryStack's reranker: one prompt for the whole pool, whose reply is an array of scores from 0.0 to 1.0."""

from __future__ import annotations

import json

from memlab.models.chat.protocol import Completion
from memlab.models.chat.replies import parse_json
from memlab.rank.rerank_llm import KINDS, ChatReranker, Judged, Pools, ShownQuestion, ask_listwise, listwise
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes
from memlab.text.transcript import NOTE

_SYSTEM = """You are an expert in information retrieval. You rate how much each stored memory helps with a query: \
1.0 for one that answers it, 0.0 for one that has nothing to do with it, and values between for partial relevance."""
_REPLY = ("There are {count} memories. Your whole reply is a JSON list of {count} decimal numbers, one rating per "
          "memory, the first memory's first.")
_ITEM_REPLY = 6
"""Tokens of one score and its comma."""


def schema(count: int) -> str:
    """Return the JSON schema of an array of ``count`` scores."""
    return json.dumps({"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1},
                       "minItems": count, "maxItems": count})


def array_scores(reply: Completion, count: int) -> list[float] | None:
    """Read ``count`` scores from 0 to 1 in the order of the memories; None for any other reply.

    >>> array_scores(Completion("[0.5, 1]", 0, 0, 0.0), 2)
    [0.5, 1.0]
    """
    read = parse_json(reply, schema(count))
    return None if read is None else [float(score) for score in read]


@stage
class ArrayRerank(ChatReranker):
    """Rerank by a chat model's scores from 0.0 to 1.0, for the whole pool in one reply, in the order of the pool.

    With ``typed`` the model is told what counts for a question of its class (query/classify).
    """

    def judge(self, pools: Pools, store: Store, notes: Notes) -> Judged:
        """Return the scores of the pools, by one prompt per pool."""
        asked = {q: listwise(self.chat, question, texts, self._system(question, len(texts)), schema(len(texts)),
                             _ITEM_REPLY) for q, (question, texts) in pools.items()}
        return ask_listwise(self.chat, pools, asked, array_scores, store, notes)

    def _system(self, question: ShownQuestion, count: int) -> str:
        what_counts = [KINDS[question.kind]] if question.kind else []
        return "\n".join([_SYSTEM, *what_counts, _REPLY.format(count=count), NOTE])
