"""The formats of exports that can be read, and the recognition of a file's format by its structure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from memlab.data.chats.content import objects_of, text_of
from memlab.data.chats.conversation import Conversation, Tally, single_copies
from memlab.data.chats.schema import BOOK, Refused, read_book
from memlab.data.chats.source import MAX_MB, ExportFile, open_export
from memlab.data.chats.table import TableFormat
from memlab.data.chats.whatsapp_dates import DateOrder
from memlab.support.errors import MemlabError, did_you_mean


def table_formats(path: Path) -> tuple[TableFormat, ...]:
    """Return the formats of a file of formats, with memlab's names of roles; raise MemlabError where it is none."""
    book, own = read_book(BOOK), read_book(path)
    return tuple(TableFormat(name, f, {**book.roles, **own.roles, **f.roles}) for name, f in own.formats.items())


FORMATS = table_formats(BOOK)



@dataclass(frozen=True)
class ChatExport:
    """The conversations of an export, each once, and the warnings of its reader.

    others: names of files that hold no chat.
    """

    format: TableFormat
    conversations: list[Conversation]
    tally: Tally
    others: list[str]


def load(path: Path, name: str = "auto", max_mb: float = MAX_MB, dates: DateOrder | None = None) -> ChatExport:
    """Read an export; raise MemlabError with what is wrong, in which file, and what to do.

    name: of a format, or auto, or the path of a file of formats. dates: order of WhatsApp's dates, None takes it from
    the file.
    """
    own = table_formats(Path(name)) if name.endswith((".yaml", ".yml")) else ()
    formats = own or FORMATS
    known, name = ["auto", *(f.name for f in formats)], "auto" if own else name
    if name not in known:
        raise MemlabError(f"there is no format '{name:.40}'", where="--format", fix=did_you_mean(name, known))
    files = open_export(path, max_mb)
    owned = _by_format(files, [f for f in formats if f.name == name] or formats)
    chosen = _vendors(owned)
    if len(chosen) > 1:
        raise MemlabError(f"it holds chats of several formats: {', '.join(f.name for f in chosen)}", where=str(path),
                          fix="choose one with --format, or import the files one by one")
    chats = {file for f in chosen for file in owned[f]}
    kinds = {kind for file in chats for kind in _kinds(file)}
    tally = Tally()
    if not chats:
        raise _no_chats(path, files, formats, name)
    for file in files:
        if not (fault := file.fault):
            continue
        if _kinds(file.name)[-1] in kinds:
            raise MemlabError(fault.what, where=f"{path}: {fault.where}", fix=fault.fix)
        tally.remarks.append(f"left out, since it cannot be read: {fault.where} ({fault.what})")
    for other, names in owned.items():
        if other not in chosen:
            tally.remarks.append(f"left out, since of another format: {', '.join(names[:4])} ({other.table.product})")
    if missing := missing_archives(files):
        tally.remarks.append(f"the export's list names archives that are not here: {', '.join(missing)}")
    try:
        read = single_copies(chosen[0].read(files, tally, dates), tally)
    except RecursionError as fault:
        raise MemlabError("lists and objects are nested too deeply", where=str(path),
                          fix="give the export as the vendor sent it") from fault
    others = [file for file in files if not any(file.name in names for names in owned.values())]
    if alike := [file.name for file in others if file.content and _kinds(file.name)[-1] in kinds]:
        tally.remarks.append(f"left out, since no format fits, though chats have such names: {', '.join(alike[:4])}")
    return ChatExport(chosen[0], read, tally, [file.name for file in others if file.name not in alike])


def recognise(path: Path) -> str | None:
    """Return the title of the format of a file or folder; None if it is no known export, or cannot be read."""
    try:
        found = _vendors(_by_format(open_export(path), FORMATS))
    except MemlabError:
        return None
    return found[0].table.product if found else None


def _by_format(files: Sequence[ExportFile], formats: Sequence[TableFormat]) -> dict[TableFormat, list[str]]:
    """Return the names of each format's files; a file is of the first format that it matches."""
    owned: dict[TableFormat, list[str]] = {f: [] for f in formats}
    for file in files:
        if owner := next((f for f in formats if f.matches(file)), None):
            owned[owner].append(file.name)
    return {f: names for f, names in owned.items() if names}


def _vendors(found: Collection[TableFormat]) -> list[TableFormat]:
    """Return the vendors' formats; weak ones only alone, since files beside any export may look like them."""
    return [f for f in found if not f.table.weak] or [*found]


def _kinds(name: str) -> list[tuple[str, str]]:
    """Return the first word and the ending of each part of a path: files of chats in one export have those in common.

    >>> _kinds("Chats__0.zip/conversations-001.json")
    [('Chats', '.zip'), ('conversations', '.json')]
    """
    parts = map(PurePosixPath, PurePosixPath(name).parts)
    return [(re.split(r"[\W\d_]", part.stem, maxsplit=1)[0], part.suffix.lower()) for part in parts]


def missing_archives(files: Sequence[ExportFile]) -> list[str]:
    """Return the names of the archives with chats that the manifest of an export lists, and that are not there."""
    listed = [text_of(entry.get("filename") or entry.get("name")) for file in files
              if file.stem.startswith("manifest") and isinstance(file.content, dict)
              for entry in objects_of(file.content.get("data_files") or file.content.get("files"))]
    there = {PurePosixPath(part).stem for file in files for part in PurePosixPath(file.name).parts}
    return [name for name in dict.fromkeys(listed)
            if name.startswith(("conversations", "design_chats")) and PurePosixPath(name).stem not in there]


def _no_chats(path: Path, files: Sequence[ExportFile], formats: Sequence[TableFormat], name: str) -> MemlabError:
    """Return the error for an export without chats of a format, or of any."""
    for file in files:
        if refusal := _refusal(file):
            return MemlabError(f"this is {refusal.product}, which is not read: it holds {shape_of(file.content)}",
                               where=f"{path}: {file.name}", fix=refusal.fix)
        if file.fault:
            return MemlabError(file.fault.what, where=f"{path}: {file.fault.where}", fix=file.fault.fix)
    if missing := missing_archives(files):
        return MemlabError("this is the list of an export's archives, and they are not here", where=str(path),
                           fix=f"download {', '.join(missing[:8])} into one folder, and import the folder")
    wanted = next((f"no {f.table.product}" for f in formats if f.name == name), "no chat export that memlab knows")
    found = "; ".join(f"{file.name} holds {shape_of(file.content)}" for file in files[:3])
    return MemlabError(f"this is {wanted}: {found}", where=str(path),
                       fix=f"the formats are {', '.join(f.name for f in formats)}; docs/your_own_chats.md says how to "
                           "describe another one in ten lines")


def _refusal(file: ExportFile) -> Refused | None:
    """Return what a file is that is known and not read; None for any other file."""
    head = file.content[:10_000] if isinstance(file.content, str) else ""
    return next((refused for refused in read_book(BOOK).refused if refused.holds in head
                 and fnmatch(PurePosixPath(file.name).name.lower(), refused.files)), None)


def shape_of(content: object) -> str:
    """Return in words what a file holds, so that its format can be found or described.

    >>> shape_of([{"who": "Ann", "words": "Hi"}]), shape_of("Dear Ann,\\nHi")
    ('a list of objects with who, words', "a text that begins 'Dear Ann,'")
    """
    if isinstance(content, str):
        return f"a text that begins {content.strip().partition(chr(10))[0][:40]!r}"
    if isinstance(content, list) and content:
        return f"a list of {shape_of(content[0]).removeprefix('an ').replace('object', 'objects', 1)}"
    if isinstance(content, dict):
        return f"an object with {', '.join(map(str, [*content][:6]))}"
    return f"nothing but {content!r:.40}"
