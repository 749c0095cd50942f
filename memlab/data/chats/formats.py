"""The formats of exports that can be read, and the recognition of a file's format by its structure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from memlab.data.chats.chatgpt import ChatGPT
from memlab.data.chats.claude import Claude, missing_archives
from memlab.data.chats.claude_code import ClaudeCode
from memlab.data.chats.codex import Codex
from memlab.data.chats.conversation import Conversation, ExportFormat, Tally
from memlab.data.chats.copies import single_copies
from memlab.data.chats.gemini import Gemini
from memlab.data.chats.grok import Grok
from memlab.data.chats.messages import Messages
from memlab.data.chats.perplexity import Perplexity
from memlab.data.chats.slack import Slack
from memlab.data.chats.source import MAX_MB, ExportFile, open_export
from memlab.data.chats.whatsapp import DateOrder, WhatsApp
from memlab.support.errors import MemlabError, did_you_mean

FORMATS: tuple[ExportFormat, ...] = (
    ChatGPT(), Claude(), Gemini(), Grok(), Perplexity(), Slack(), WhatsApp(), ClaudeCode(), Codex(), Messages())

_NO_LETTER = re.compile(r"[\W\d_]")


@dataclass(frozen=True)
class ChatExport:
    """The conversations of an export, each once, and the warnings of its reader.

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
    owned = _by_format(files, [f for f in formats if f.name == name] or formats)
    chosen = _vendors(owned)
    if len(chosen) > 1:
        raise MemlabError(f"it holds chats of several formats: {', '.join(f.name for f in chosen)}", where=str(path),
                          fix="choose one with --format, or import the files one by one")
    chats = {file for f in chosen for file in owned[f]}
    kinds = {kind for file in chats for kind in _kinds(file)}
    tally = Tally()
    for file in files:
        if file.fault is None:
            continue
        if not chats or _kinds(file.name)[-1] in kinds:
            raise MemlabError(file.fault.what, where=f"{path}: {file.fault.where}", fix=file.fault.fix)
        tally.remarks.append(f"left out, since it cannot be read: {file.fault.where} ({file.fault.what})")
    if not chats:
        raise _no_chats(path, files, formats, name)
    for other, names in owned.items():
        if other not in chosen:
            tally.remarks.append(f"left out, since of another format: {_some(names)} ({other.title})")
    if missing := missing_archives(files):
        tally.remarks.append(f"the export's list names archives that are not here: {', '.join(missing)}")
    try:
        read = single_copies(chosen[0].read(files, tally), tally)
    except RecursionError as fault:
        raise MemlabError("lists and objects are nested too deeply", where=str(path),
                          fix="give the export as the vendor sent it") from fault
    claimed = {name for names in owned.values() for name in names}
    others = [file for file in files if file.name not in claimed]
    if alike := [file.name for file in others if file.content and _kinds(file.name)[-1] in kinds]:
        tally.remarks.append(f"left out, since no known format fits, though chats have such names: {_some(alike)}")
    return ChatExport(chosen[0], read, tally, [file.name for file in others if file.name not in alike])


def _some(names: list[str]) -> str:
    return ", ".join([*names[:4], "..."] if len(names) > 4 else names)


def recognise(path: Path) -> str | None:
    """Return the title of the format of a file or folder; None if it is no known export, or cannot be read."""
    try:
        found = _vendors(_by_format(open_export(path), FORMATS))
    except MemlabError:
        return None
    return found[0].title if found else None


def _by_format(files: Sequence[ExportFile], formats: Sequence[ExportFormat]) -> dict[ExportFormat, list[str]]:
    """Return the names of each format's files; a file is of the first format that it matches."""
    owned: dict[ExportFormat, list[str]] = {f: [] for f in formats}
    for file in files:
        if owner := next((f for f in formats if f.matches(file)), None):
            owned[owner].append(file.name)
    return {f: names for f, names in owned.items() if names}


def _vendors(found: Iterable[ExportFormat]) -> list[ExportFormat]:
    """Return the vendors' formats; the one of messages only alone, since files beside any export may look like it."""
    formats = list(found)
    return [f for f in formats if not isinstance(f, Messages)] or formats


def _kinds(name: str) -> list[tuple[str, str]]:
    """Return the first word and the ending of each part of a path: files of chats in one export have those in common.

    >>> _kinds("Chats__0.zip/conversations-001.json")
    [('Chats', '.zip'), ('conversations', '.json')]
    """
    parts = map(PurePosixPath, PurePosixPath(name).parts)
    return [(_NO_LETTER.split(part.stem, maxsplit=1)[0], part.suffix.lower()) for part in parts]


def _no_chats(path: Path, files: Sequence[ExportFile], formats: Sequence[ExportFormat], name: str) -> MemlabError:
    """Return the error for an export without chats of a format, or of any."""
    if missing := missing_archives(files):
        return MemlabError("this is the list of an export's archives, and they are not here", where=str(path),
                           fix=f"download {', '.join(missing[:8])} into one folder, and import the folder")
    wanted = "no chat export that memlab knows"
    if name != "auto":
        wanted = "no " + next(f.title for f in formats if f.name == name)
    return MemlabError(f"this is {wanted}", where=str(path),
                       fix=f"known formats: {', '.join(f'{f.name} ({f.title})' for f in formats)}; or write "
                       "sessions.jsonl yourself (docs/your_own_chats.md)")
