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
    said: list[dict[str, Any]] = []
    questions: dict[str, dict[str, str]] = {}  # of calls that ask the user, by the names of their answers
    for line in lines:
        kind, payload = text_of(line.get("type")), object_of(line.get("payload"))
        item = payload if kind in ("response_item", "event_msg") else line
        sort, time = text_of(item.get("type")), {"timestamp": line.get("timestamp")}
        if sort == "thread_rolled_back":
            _roll_back(said, payload.get("num_turns"), tally)
        elif sort in _SUMMARIES:
            tally.add("summaries of earlier messages left out", kind != "event_msg")  # which are copies
        elif kind == "event_msg" or kind in _ENVELOPES and kind != "response_item":
            tally.add("lines without a message left out", sort not in _COPIES | {"session_meta"}, kind=sort)
        elif sort == "message" and (role := text_of(item.get("role"))) in ("user", "assistant"):
            text = flatten(item.get("content"), tally)
            is_context = role == "user" and _is_context(text)
            tally.add("context added by the program left out", is_context)
            said += [{"role": role, "text": text, **time}] if text and not is_context else []
        elif sort.endswith("_call"):
            name = placeholder("tool", item.get("name") or sort.removesuffix("_call"))
            said.append({"role": "assistant", "text": name, **time})
            if item.get("name") == "request_user_input":
                asked = objects_of(_json(item.get("arguments")).get("questions"))
                questions[text_of(item.get("call_id"))] = {
                    text_of(q.get("id")): text_of(q.get("question")) for q in asked}
        elif text := _answers(item, questions.get(text_of(item.get("call_id")))):
            said.append({"role": "user", "text": text, "is_answer": True, **time})
        else:
            words = "results of tools left out" if sort.endswith("_output") else _LEFT_OUT.get(sort)
            tally.add(words or "lines without a message left out", kind="" if words else sort)
    return said


def _answers(item: dict[str, Any], asked: dict[str, str] | None) -> str:
    """Return the user's answers in the output of a call that asked; "" for any other output."""
    lines = []
    for key, value in object_of(_json(item.get("output")).get("answers")).items() if asked is not None else ():
        chosen = value.get("answers") if isinstance(value, dict) else value
        texts = map(text_of, chosen if isinstance(chosen, list) else [chosen])
        lines.append(" ".join(filter(None, [(asked or {}).get(key) or key, ", ".join(filter(None, texts))])))
    return "\n".join(lines)


def _roll_back(said: list[dict[str, Any]], turns: object, tally: Tally) -> None:
    """Remove the last ``turns`` turns of the user and all that followed them."""
    begins = [place for place, m in enumerate(said) if m["role"] == "user" and "is_answer" not in m]
    if isinstance(turns, int) and turns > 0 and begins:
        first = begins[-min(turns, len(begins))]
        tally.add("messages of other branches left out (questions taken back)", len(said) - first)
        del said[first:]


def _is_context(text: str) -> bool:
    """Return whether the program wrote a message: names of its tags have an underscore, those of HTML have none."""
    match = _CONTEXT.fullmatch(text)
    return match is not None and (match[2] is None or "_" in match[2] or match[2] in ("skill", "INSTRUCTIONS"))


def _json(value: object) -> dict[str, Any]:
    with suppress(ValueError):
        return object_of(load_json(value) if isinstance(value, str) else value)
    return {}
