"""Perplexity's threads, in the two structures in which people get them.

* The vendor's answer to a request for data (perplexity.typeform.com/datarequest): ``conversations``, each with
  ``context_title`` and ``entries`` of ``query``, ``answer``, ``created_at`` and ``query_status``; as
  perplexity-export-convert.py of FraYoshi/perplexity-export-convert reads it.
* Replies of the web site, which leonid-shevtsov/perplexport and its forks save, one file for each thread: ``entries``
  of ``query_str`` and ``blocks``, the answer in ``markdown_block``; src/types/conversation.ts there.

Times without an offset are taken as UTC. Lists of sources and proposed questions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from memlab.data.chats.conversation import ChatMessage, Conversation, Tally
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import Time, said_on
from memlab.data.chats.values import entries_of, object_of, objects_of, text_of

_FOLLOW_UP = re.compile(r"\[([^\[\]]*+)\]\(pplx://[^()\s]*+\)")
_ENTRY = {"query", "answer", "query_str", "blocks"}


class Perplexity:
    """One session for each thread."""

    name: ClassVar = "perplexity"
    title: ClassVar = "Perplexity threads"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a thread with an entry of one of the two structures in the file."""
        return file.ending == ".json" and any(
            _ENTRY & entry.keys() for thread in _threads(file) for entry in objects_of(thread.get("entries")))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations."""
        return [_conversation(thread, tally) for file in filter(self.matches, files) for thread in _threads(file)]


def _threads(file: ExportFile) -> Iterator[dict[str, Any]]:
    for holder in entries_of(file):
        yield from [holder] if isinstance(holder.get("entries"), list) else objects_of(holder.get("conversations"))


def _conversation(thread: dict[str, Any], tally: Tally) -> Conversation:
    about = object_of(thread.get("metadata")) or object_of(thread.get("thread_metadata"))
    entries = objects_of(thread.get("entries"))
    messages: list[ChatMessage] = []
    for entry in entries:
        time = _moment(entry)
        question, answer = text_of(entry.get("query")) or text_of(entry.get("query_str")), _answer(entry)
        messages += [ChatMessage("user", question, None, time)] if question else []
        messages += [ChatMessage("assistant", answer, None, time)] if answer else []
        tally.add("questions without an answer", bool(question) and not answer)
    titles = (thread.get("context_title"), about.get("title"), *(entry.get("thread_title") for entry in entries))
    keys = (holder.get("context_uuid") for holder in (thread, *entries))
    return Conversation(next(filter(None, map(text_of, titles)), ""), messages, _moment({**about, **thread}),
                        key=next(filter(None, map(text_of, keys)), ""))


def _answer(entry: dict[str, Any]) -> str:
    """Return the answer; links of headings to follow-up questions become their text."""
    blocks = [object_of(block.get("markdown_block")) for block in objects_of(entry.get("blocks"))]
    chunks = [block["chunks"] for block in blocks if isinstance(block.get("chunks"), list)]
    joined = ("".join(chunk for chunk in pieces if isinstance(chunk, str)) for pieces in chunks)
    texts = (entry.get("answer"), *(block.get("answer") for block in blocks), *joined)
    return _FOLLOW_UP.sub(r"\1", next(filter(None, map(text_of, texts)), ""))


def _moment(holder: dict[str, Any]) -> Time:
    time = said_on(holder)
    return time.replace(tzinfo=UTC) if isinstance(time, datetime) else time
