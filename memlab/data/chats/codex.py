"""Codex's session logs: rollout-*.jsonl below ~/.codex/sessions.

A line has ``timestamp``, ``type`` and ``payload``; what was said are payloads of type message under ``response_item``,
of which lines of type ``event_msg`` are copies. Answers to the assistant's questions (``request_user_input``) stand in
the output of that call. Context that the program adds (environment,
instructions), reasoning, outputs of tools and other lines are left out and counted; calls of tools are named in the
assistant's turn. The kinds are those of openai/codex (codex-rs/protocol/src/models.rs, codex-rs/rollout/src/policy.rs).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from memlab.data.chats.content import flatten, placeholder
from memlab.data.chats.conversation import Tally
from memlab.data.chats.values import object_of, objects_of, text_of
from memlab.support.foreign import load_json

_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CONTEXT = re.compile(r"\s*(<(\w++)( [^>]*)?>.*</\2>\s*|# AGENTS\.md instructions.*)", re.DOTALL)
_COPIES = {"user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
_SUMMARIES = {"compacted", "compaction", "compaction_summary", "context_compaction", "context_compacted"}
_LEFT_OUT = {"message": "instructions left out", "reasoning": "thoughts of the assistant left out",
             **dict.fromkeys(("agent_message", "inter_agent_communication"), "messages of sub-agents left out")}


def said_lines(lines: list[dict[str, Any]], tally: Tally) -> list[dict[str, Any]]:
    """Return what was said in a log as messages with role, text and timestamp, without turns that were rolled back."""
    log = _Log(tally)
    for line in lines:
        log.add(line)
    return log.messages


@dataclass
class _Log:
    """The messages of a log so far, where each turn of the user begins, and the questions that wait for an answer."""

    tally: Tally
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    questions: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, line: dict[str, Any]) -> None:
        """Read a line."""
        kind, payload = text_of(line.get("type")), object_of(line.get("payload"))
        item = payload if kind in ("response_item", "event_msg") else line
        sort = text_of(item.get("type"))
        if kind == "event_msg" and sort == "thread_rolled_back":
            self._roll_back(payload.get("num_turns"))
        elif sort in _SUMMARIES:
            self.tally.add("summaries of earlier messages left out", kind != "event_msg")  # which are copies
        elif kind == "event_msg" or kind in _ENVELOPES and kind != "response_item":
            self.tally.add("lines without a message left out", sort not in _COPIES | {"session_meta"}, kind=sort)
        else:
            self._item(item, sort, {"timestamp": line.get("timestamp")})

    def _item(self, item: dict[str, Any], kind: str, time: dict[str, Any]) -> None:
        role = text_of(item.get("role"))
        if kind == "message" and role in ("user", "assistant"):
            text = flatten(item.get("content"), self.tally)
            if role == "user" and _is_context(text):
                self.tally.add("context added by the program left out")
            elif text:
                self.turns += [len(self.messages)] * (role == "user")
                self.messages.append({"role": role, "text": text, **time})
        elif kind.endswith("_call"):
            name = placeholder("tool", item.get("name") or kind.removesuffix("_call"))
            self.messages.append({"role": "assistant", "text": name, **time})
            if item.get("name") == "request_user_input":
                self.questions[text_of(item.get("call_id"))] = {
                    text_of(q.get("id")): text_of(q.get("question")) for q in objects_of(
                        _json(item.get("arguments")).get("questions"))}
        elif text := self._answers(item):
            self.messages.append({"role": "user", "text": text, **time})
        else:
            words = "results of tools left out" if kind.endswith("_output") else _LEFT_OUT.get(kind)
            self.tally.add(words or "lines without a message left out", kind="" if words else kind)

    def _answers(self, item: dict[str, Any]) -> str:
        """Return the user's answers in the output of a call that asked; "" for any other output."""
        asked = self.questions.get(text_of(item.get("call_id")))
        lines = []
        for key, value in object_of(_json(item.get("output")).get("answers")).items() if asked is not None else ():
            chosen = object_of(value).get("answers") if isinstance(value, dict) else value
            texts = map(text_of, chosen if isinstance(chosen, list) else [chosen])
            lines.append(" ".join(filter(None, [(asked or {}).get(key) or key, ", ".join(filter(None, texts))])))
        return "\n".join(lines)

    def _roll_back(self, turns: object) -> None:
        """Remove the last ``turns`` turns of the user and all that followed them."""
        if isinstance(turns, int) and turns > 0 and self.turns:
            first = self.turns[-min(turns, len(self.turns))]
            self.tally.add("messages of other branches left out (questions taken back)", len(self.messages) - first)
            del self.messages[first:], self.turns[-min(turns, len(self.turns)):]


def _is_context(text: str) -> bool:
    """Return whether the program wrote a message: names of its tags have an underscore, those of HTML have none."""
    match = _CONTEXT.fullmatch(text)
    return match is not None and (match[2] is None or "_" in match[2] or match[2] in ("skill", "INSTRUCTIONS"))


def _json(value: object) -> dict[str, Any]:
    with suppress(ValueError):
        return object_of(load_json(value) if isinstance(value, str) else value)
    return {}
