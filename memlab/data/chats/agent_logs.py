"""Session logs of coding agents, a .jsonl for each session: those of Claude Code and of Codex.

Claude Code (~/.claude/projects): lines of type user and assistant hold ``message.content``; ``parentUuid`` makes a
tree, since a question that is taken back leaves its branch in the file. What is typed while the assistant works waits
in a queue (lines of type queue-operation: enqueue, dequeue, remove, popAll) and is written as an attachment of type
queued_command when the model takes it up; older versions write the operations alone. Answers to the assistant's
questions and reasons for a refusal stand in the results of tools. The format is undocumented: it is read as the logs of
versions 2.0 to 2.1 and the public readers of such logs show it (simonw/claude-code-transcripts, kenn-io/agentsview).

Codex (~/.codex/sessions): a line has ``timestamp``, ``type`` and ``payload``; what was said are payloads of type
message under ``response_item``, of which lines of type ``event_msg`` are copies. Answers to the assistant's questions
(``request_user_input``) stand in the output of that call. The kinds are those of openai/codex
(codex-rs/protocol/src/models.rs, codex-rs/rollout/src/policy.rs).

What programs add, thoughts, sub-agents, summaries and results of tools are left out and counted; calls of tools are
named in the assistant's turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memlab.data.chats.content import first_at, first_text, flatten, object_of, objects_of, placeholder, text_of, walk
from memlab.data.chats.conversation import ChatMessage, Tally, path_to
from memlab.data.chats.times import said_on
from memlab.support.foreign import load_json

_NOTE = re.compile(  # to the end: one that is open is read once
    r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>.*?(?:(</\1>)|\Z)", re.DOTALL)
_COMMAND = re.compile(r"<(command-|local-command-|bash-|user-memory-input|task-notification)")
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")
_REFUSED, _SAID = "The user doesn't want to proceed with this tool use", "the user said:"
_ADVICE = ("\n\nNote: The user's next message", "The user wants to clarify these questions")  # by the program
_TITLES = {"custom-title", "ai-title", "summary"}
_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CONTEXT = re.compile(r"\s*(<(\w++)( [^>]*)?>.*</\2>\s*|# AGENTS\.md instructions.*)", re.DOTALL)
_COPIES = {"user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
_SUMMARIES = {"compacted", "compaction", "compaction_summary", "context_compaction", "context_compacted"}
_LEFT_OUT = {"message": "instructions left out", "reasoning": "thoughts of the assistant left out",
             **dict.fromkeys(("agent_message", "inter_agent_communication"), "messages of sub-agents left out")}


def sent_lines(lines: list[dict[str, Any]], tally: Tally) -> list[dict[str, Any]]:
    """Return the lines of a log with its queue in place, without branches that were taken back."""
    return _branch(_without_queue(lines), tally)


def _without_queue(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines without the queue's; a prompt that was sent and stands in no other line takes their place."""
    held = Counter(part for line in lines for part in _parts_of(line))
    waiting: dict[str, dict[str, Any]] = {}
    kept = []
    for line in lines:
        operation, text = text_of(line.get("operation")), _plain(flatten(line.get("content"), Tally()), Tally())
        if line.get("type") != "queue-operation":
            kept.append(line)
        elif operation == "enqueue":
            waiting.update({text: line} if text else {})
        elif operation == "popAll":  # taken back into the input
            waiting.clear()
        elif text := text or next(iter(waiting), ""):
            sent, parts = waiting.pop(text, line), [part.strip() for part in text.splitlines()]
            if all(held[part] for part in parts):
                held.subtract(parts)
            elif text_of(line.get("reason")) in ("", "absorbed_mid_turn"):
                kept.append({**sent, "type": "attachment", "attachment": {"type": "queued_command", "prompt": text}})
    return kept


def _parts_of(line: dict[str, Any]) -> list[str]:
    """Return the lines of what a user's message or a queued prompt says; several prompts are sent as one message."""
    place = "message.content" if line.get("type") == "user" else "attachment.prompt" if _is_prompt(line) else "none"
    content = first_at(line, [place])
    return [part.strip() for part in _plain(flatten(content, Tally()), Tally()).splitlines()]


def _branch(lines: list[dict[str, Any]], tally: Tally) -> list[dict[str, Any]]:
    """Return the lines without those of branches that begin with a question and do not lead to the last line.

    Calls of tools side by side are branches too, and stay; so does what is not connected to the last line.
    """
    by_id = {key: line for line in lines if (key := text_of(line.get("uuid")))}
    parents = {key: first_text(line, "parentUuid", "logicalParentUuid") for key, line in by_id.items()}
    last = next((key for key in reversed(by_id) if _is_spoken(by_id[key])), None)
    path, dropped = set(path_to(last, parents)), set[str]()
    for key, above in parents.items():  # parents stand first
        if key not in path and (above in dropped or above in path and _is_question(by_id[key])):
            dropped.add(key)
    tally.add("messages of other branches left out (questions taken back)",
              sum(_is_spoken(by_id[key]) for key in dropped))
    return [line for line in lines if text_of(line.get("uuid")) not in dropped]


def _is_prompt(line: Mapping[str, Any]) -> bool:
    return line.get("type") == "attachment" and first_text(line, "attachment.type") == "queued_command"


def _is_spoken(line: dict[str, Any]) -> bool:
    return (line.get("type") in ("user", "assistant") or _is_prompt(line)) and line.get("isSidechain") is not True


def _is_question(line: dict[str, Any]) -> bool:
    has_result = "tool_result" in walk(line, "message.content.[].type")  # of one of several calls side by side
    noted = any(line.get(flag) is True for flag in ("isSidechain", "isMeta", "isCompactSummary"))
    return line.get("type") == "user" and not (has_result or noted) and read_claude_code(line, Tally(), "") is not None


def _plain(text: str, tally: Tally) -> str:
    """Return a text without the notes that the program put into it."""
    tally.add("notes of the program left out", sum(bool(match[2]) for match in _NOTE.finditer(text)))
    return _NOTE.sub(lambda match: "" if match[2] else match[0], text).strip()


def read_claude_code(line: Mapping[str, Any], tally: Tally, _: str) -> ChatMessage | None:
    """Return what was said in a line; None for what the program wrote, which is counted."""
    role, message, item = line.get("type"), object_of(line.get("message")), object_of(line.get("attachment"))
    if not (role in ("user", "assistant") or _is_prompt(line)):
        kind = text_of(item.get("type")) or text_of(role)
        if role == "system" and text_of(line.get("content")):
            tally.add("notes of the program left out")
        elif kind not in _TITLES:
            tally.add("lines without a message left out", kind=kind)
        return None
    time = said_on(line)
    if role == "assistant":
        text = flatten(message.get("content"), tally)
        return ChatMessage("assistant", text, None, time) if text else None
    typed = _typed_text(_plain(flatten(item.get("prompt") if item else message.get("content"), tally), tally), tally)
    text = "\n".join(filter(None, [_answers_in(line), typed]))
    return ChatMessage("user", text, None, time) if text else None


def _typed_text(text: str, tally: Tally) -> str:
    """Return what the user typed: also after the name of a command, and as a note to remember."""
    if not _COMMAND.match(text) and not _INTERRUPTED.fullmatch(text):
        return text
    name, words, note = (text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()
                         for tag in ("command-name", "command-args", "user-memory-input"))
    typed = note or (f"{name} {words}" if words else "")
    tally.add("notes of the program left out", not typed)
    return typed


def _answers_in(line: Mapping[str, Any]) -> str:
    """Return the user's answers to questions of the assistant, or the reason for refusing a call; "" for none."""
    answers = []
    for question, answer in object_of(first_at(line, ["toolUseResult.answers"])).items():
        chosen = ", ".join(map(text_of, answer)) if isinstance(answer, list) else text_of(answer)
        note = object_of(object_of(first_at(line, ["toolUseResult.annotations"])).get(question)).get("notes")
        answers.append(" ".join(filter(None, [question, chosen, text_of(note)])))
    for part in objects_of(first_at(line, ["message.content"])):
        if part.get("type") == "tool_result" and part.get("is_error") is True:
            text = flatten(part.get("content"), Tally())
            reason = text.partition(_SAID)[2] if text.startswith(_REFUSED) else ""
            for advice in _ADVICE:
                reason = reason.partition(advice)[0]
            answers.append(reason.strip())
    return "\n".join(filter(None, answers))


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
            if is_context := role == "user" and _is_context(text):
                tally.add("context added by the program left out")
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
