"""The formats of exports that can be read, and the recognition of a file's format by its structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memlab.chats.chatgpt import ChatGPT
from memlab.chats.claude import Claude
from memlab.chats.claude_code import ClaudeCode
from memlab.chats.codex import Codex
from memlab.chats.conversation import Conversation, ExportFormat, Tally
from memlab.chats.gemini import Gemini
from memlab.chats.grok import Grok
from memlab.chats.messages import Messages
from memlab.chats.perplexity import Perplexity
from memlab.chats.slack import Slack
from memlab.chats.source import MAX_MB, ExportFile, open_export
from memlab.chats.whatsapp import DateOrder, WhatsApp
from memlab.errors import MemlabError, did_you_mean

FORMATS: tuple[ExportFormat, ...] = (
    ChatGPT(), Claude(), Gemini(), Grok(), Perplexity(), Slack(), WhatsApp(), ClaudeCode(), Codex(), Messages())


@dataclass(frozen=True)
class ChatExport:
    """The conversations of an export, and the warnings of its reader.

    others: names of files that hold no chat.
    """

    format: ExportFormat
    conversations: list[Conversation]
    tally: Tally
    others: list[str]


def load(path: Path, name: str = "auto", max_mb: float = MAX_MB, dates: DateOrder | None = None) -> ChatExport:
    """Read an export; raise MemlabError with what is wrong, in which file, and what to do.

    name: of a format, or auto. dates: order of WhatsApp's dates, None takes it from the file.
    """
    formats = [WhatsApp(dates) if isinstance(f, WhatsApp) else f for f in FORMATS]
    known = [f.name for f in formats]
    if name != "auto" and name not in known:
        raise MemlabError(f"there is no format '{name:.40}'", where="--format",
                          fix=did_you_mean(name, [*known, "auto"]))
    files = open_export(path, max_mb)
    chosen = [f for f in formats if f.name == name] or _matching_formats(files, formats)
    if len(chosen) > 1:
        raise MemlabError(f"it holds chats of several formats: {', '.join(f.name for f in chosen)}", where=str(path),
                          fix="choose one with --format, or import the files one by one")
    matching = {file.name for f in chosen for file in files if f.matches(file)}
    for file in files:
        if file.fault and (not matching or file.ending not in (".txt", ".html")):  # a damaged file may hold chats
            raise MemlabError(file.fault.what, where=f"{path}: {file.fault.where}", fix=file.fault.fix)
    if not matching:
        wanted = f"no {chosen[0].title}" if chosen else "no chat export that memlab knows"
        raise MemlabError(f"this is {wanted}", where=str(path),
                          fix=f"known formats: {', '.join(f'{f.name} ({f.title})' for f in formats)}; or write "
                          "sessions.jsonl yourself (docs/your_own_chats.md)")
    tally = Tally()
    return ChatExport(chosen[0], chosen[0].read(files, tally), tally,
                      [file.name for file in files if file.name not in matching])


def recognise(path: Path) -> str | None:
    """Return the title of the format of a file or folder; None if it is no known export, or cannot be read."""
    try:
        found = _matching_formats(open_export(path), FORMATS)
    except MemlabError:
        return None
    return found[0].title if found else None


def _matching_formats(files: Sequence[ExportFile], formats: Sequence[ExportFormat]) -> list[ExportFormat]:
    return [f for f in formats if any(f.matches(file) for file in files)]
