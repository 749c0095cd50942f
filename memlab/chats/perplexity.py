"""Perplexity's threads, in the three structures in which people get them.

* The vendor's answer to a request for data (perplexity.typeform.com/datarequest): ``conversations``, each with
  ``context_title`` and ``entries`` of ``query``, ``answer``, ``created_at`` and ``query_status``; as
  perplexity-export-convert.py of FraYoshi/perplexity-export-convert reads it.
* Replies of the web site, which leonid-shevtsov/perplexport and its forks save, one file for each thread: ``entries``
  of ``query_str`` and ``blocks``, the answer in ``markdown_block``; src/types/conversation.ts there.
* Files of the browser extension Perplexity Thread Exporter: ``metadata`` with ``thread_title``, and ``conversations``
  of ``query``, ``answer``, ``timestamp`` and ``sources``; src/providers/perplexity/perplexity-types.ts of
  Superkikim/nexus-ai-chat-importer.

Times without an offset are taken as UTC. Lists of sources and proposed questions are left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from memlab.chats.conversation import ChatMessage, Conversation, Tally
from memlab.chats.source import ExportFile
from memlab.chats.times import Time, said_on
from memlab.chats.values import entries_of, object_of, objects_of, text_of

_FOLLOW_UP = re.compile(r"\[([^\[\]]*+)\]\(pplx://[^()\s]*+\)")
_ENTRY = {"query", "answer", "query_str", "blocks"}


class _Thread(NamedTuple):
    title: str
    started_on: Time
    entries: list[dict[str, Any]]
    key: str


class Perplexity:
    """One session for each thread."""

    name: ClassVar = "perplexity"
    title: ClassVar = "Perplexity threads"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a thread with an entry of one of the three structures in the file."""
        return file.ending == ".json" and any(
            _ENTRY & entry.keys() for thread in _threads(file) for entry in thread.entries)

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations."""
        return [_conversation(thread, tally) for file in filter(self.matches, files) for thread in _threads(file)]


def _threads(file: ExportFile) -> Iterator[_Thread]:
    for holder in entries_of(file):
        about = object_of(holder.get("metadata")) or object_of(holder.get("thread_metadata"))
        if isinstance(holder.get("entries"), list):
            entries = objects_of(holder["entries"])
            titles = (holder.get("context_title"), about.get("title"), *(e.get("thread_title") for e in entries))
            yield _Thread(next(filter(None, map(text_of, titles)), ""), _moment(about, holder), entries,
                          _key(holder, *entries))
        elif about:
            yield _Thread(text_of(about.get("thread_title")), _moment(about),
                          objects_of(holder.get("conversations")), text_of(about.get("thread_id")))
        else:
            for thread in objects_of(holder.get("conversations")):
                yield _Thread(text_of(thread.get("context_title")), _moment(thread),
                              objects_of(thread.get("entries")), _key(thread))


def _key(*holders: dict[str, Any]) -> str:
    return next(filter(None, (text_of(holder.get("context_uuid")) for holder in holders)), "")


def _conversation(thread: _Thread, tally: Tally) -> Conversation:
    messages: list[ChatMessage] = []
    for entry in thread.entries:
        time = _moment(entry)
        question, answer = text_of(entry.get("query")) or text_of(entry.get("query_str")), _answer(entry)
        messages += [ChatMessage("user", question, None, time)] if question else []
        messages += [ChatMessage("assistant", answer, None, time)] if answer else []
        sources = entry.get("sources")
        tally.add("lists of sources left out", isinstance(sources, list) and bool(sources) or any(
            "sources_mode_block" in block or "web_result_block" in block for block in objects_of(entry.get("blocks"))))
        proposed = entry.get("related_queries") or entry.get("related_query_items")
        tally.add("proposed questions left out", len(proposed) if isinstance(proposed, list) else 0)
        tally.add("questions without an answer", bool(question) and not answer)
    return Conversation(thread.title, messages, thread.started_on, key=thread.key)


def _answer(entry: dict[str, Any]) -> str:
    """Return the answer; links of headings to follow-up questions become their text."""
    blocks = [object_of(block.get("markdown_block")) for block in objects_of(entry.get("blocks"))]
    chunks = [block["chunks"] for block in blocks if isinstance(block.get("chunks"), list)]
    joined = ("".join(chunk for chunk in pieces if isinstance(chunk, str)) for pieces in chunks)
    texts = (entry.get("answer"), *(block.get("answer") for block in blocks), *joined)
    return _FOLLOW_UP.sub(r"\1", next(filter(None, map(text_of, texts)), ""))


def _moment(*holders: dict[str, Any]) -> Time:
    time = said_on({key: value for holder in holders for key, value in holder.items()})
    return time.replace(tzinfo=UTC) if isinstance(time, datetime) else time
