"""Command that imports a chat export: ``memlab import FILE_OR_FOLDER [--format auto] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from memlab.data.chats.conversation import ChatSession, Split, to_sessions
from memlab.data.chats.folder import SESSIONS, Changes, ImportSettings, common_settings, update_folder
from memlab.data.chats.formats import FORMATS, ChatExport, load
from memlab.data.chats.source import MAX_MB
from memlab.data.chats.whatsapp_dates import DateOrder
from memlab.support.clock import has_offset, time_zone
from memlab.support.errors import MemlabError
from memlab.support.help_text import Parser
from memlab.support.machine import enough_memory
from memlab.support.paths import path_argument, text_argument
from memlab.support.shell import data_path
from memlab.support.terminal import print
from memlab.support.text.display import plural, safe_line

_DATES = {"auto": None, "day-first": DateOrder.DAY_FIRST, "month-first": DateOrder.MONTH_FIRST,
          "year-first": DateOrder.YEAR_FIRST}


def main(arguments: Sequence[str] | None = None) -> int:
    """Import an export; return 0, or 1 after a message about what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        _import(options)
    except MemlabError as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlab import", description="Import a chat export into a folder that data=custom reads.",
        epilog="formats: " + ", ".join(f.name for f in FORMATS))
    parser.add_argument("path", type=path_argument,
                        help="the export: a file, a zip, or a folder of files and zips; a later one adds what is new")
    parser.add_argument("--format", default="auto", metavar="NAME",
                        help="format of the export, or a .yaml file that describes one of your own (default: auto)")
    parser.add_argument("--out", type=path_argument, metavar="FOLDER", help="folder to write (default: ./chats-FORMAT)")
    parser.add_argument("--corpus", type=text_argument, metavar="NAME",
                        help="name of the corpus (default: that of the folder's earlier imports, or the format)")
    parser.add_argument("--split", choices=get_args(Split),
                        help="where conversations are cut: day (default: at midnight, so that no question "
                             "sees what was said on a later day), conversation (nowhere), or auto (Slack channels and "
                             "WhatsApp chats at midnight, others nowhere)")
    parser.add_argument("--timezone", metavar="NAME",
                        help="time zone of the dates, such as Europe/Rome (default: that of the folder's earlier "
                             "imports, or UTC; WhatsApp's are local)")
    parser.add_argument("--date-order", choices=_DATES, default="auto", help="of WhatsApp's dates (default: auto)")
    parser.add_argument("--max-mb", type=float, default=MAX_MB, metavar="N",
                        help=f"limit of the chats' size, unpacked (default: {MAX_MB:g})")
    parser.add_argument("--replace", action="store_true", help="replace the sessions in the folder")
    return parser


@enough_memory("import a part of the export at a time: some of its files")
def _import(options: argparse.Namespace) -> None:
    if options.timezone is not None:
        time_zone(options.timezone, "--timezone")
    if options.corpus is not None and not options.corpus.strip():
        raise MemlabError("the name of a corpus is blank", where="--corpus", fix="give a name, or leave --corpus out")
    if not 0 < options.max_mb < 1e6:
        raise MemlabError("expected a size in MB", where="--max-mb", fix=f"give a number such as {MAX_MB:g}")
    export = load(options.path, options.format, options.max_mb, _DATES[options.date_order])
    folder = options.out or Path(f"chats-{export.format.name}")
    given = {"corpus": options.corpus, "split": options.split, "timezone": options.timezone}
    default = ImportSettings(export.format.name, "day", "UTC")
    settings = common_settings(folder, given, default, fresh=options.replace)
    zone = time_zone(settings.timezone, "--timezone")
    sessions = to_sessions(export.conversations, settings.split, zone, export.tally)
    if not sessions:
        raise MemlabError("there is no message in it", where=str(options.path))
    changes = update_folder(folder, settings, sessions, source=export.format.name, fresh=options.replace)
    print(f"{safe_line(options.path)}: {export.format.table.product}")
    for line in _facts(export, sessions, settings):
        print(f"  {safe_line(line)}")
    print(f"{_changes_in_words(changes)}: {safe_line(folder / SESSIONS)}")
    print(f'next: memlab ask data=custom {data_path(str(folder))} "your question"', secret=True)


def _facts(export: ChatExport, sessions: list[ChatSession], settings: ImportSettings) -> list[str]:
    turns = [turn for session in sessions for turn in session.turns]
    days = [session.said_on for session in sessions if session.said_on]
    span = f", from {min(days):%Y-%m-%d} to {max(days):%Y-%m-%d}" if days else ""
    characters = plural(sum(len(turn.text) for turn in turns), "character")
    facts = [f"{plural(len(sessions), 'session')}, {plural(len(turns), 'turn')}, {characters}{span}"]
    if len(sessions) != len(export.conversations):
        facts.append(f"from {plural(len(export.conversations), 'conversation')}" + (
            "" if settings.split == "conversation" else ", cut at midnight (--split conversation cuts nowhere)"))
    speakers = Counter(turn.speaker or turn.role for turn in turns)
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(speakers.items(), key=lambda s: (-s[1], s[0]))[:8])
    facts.append(f"{plural(len(speakers), 'speaker')}: {listed}" + (
        f", and {len(speakers) - 8:,} more" if len(speakers) > 8 else ""))
    if rooms := {session.room for session in sessions} - {""}:
        facts.append(f"{plural(len(rooms), 'room')}: {', '.join(sorted(rooms)[:8])}{', ...' * (len(rooms) > 8)}")
    if any(has_offset(m.said_on) for c in export.conversations for m in c.messages):
        facts.append(f"times are in {settings.timezone}"
                     + ("; --timezone changes it" if settings.timezone == "UTC" else ""))
    facts += [f"{what}: {count:,}" for what, count in sorted(export.tally.counts.items())]
    facts += export.tally.remarks
    if export.others:
        facts.append(f"files without chats left out: {len(export.others):,} ({', '.join(export.others[:4])}"
                     + (", ...)" if len(export.others) > 4 else ")"))
    return facts


def _changes_in_words(changes: Changes) -> str:
    """Return what became of the folder's sessions.

    >>> _changes_in_words(Changes(new=2, went_on=1, turns=3, unchanged=40, absent=0, stored=43))
    'added 2 new sessions, and 3 turns of 1 that went on; 40 unchanged, 43 in all'
    >>> _changes_in_words(Changes(new=1, went_on=0, turns=0, unchanged=1, absent=0, stored=2))
    'added 1 new session, and 0 turns of 0 that went on; 1 unchanged, 2 in all'
    """
    if changes.new == changes.stored:
        return "written"
    there = f"{changes.unchanged:,} unchanged" + (f", {changes.absent:,} not in this export" if changes.absent else "")
    if not changes.new + changes.went_on:
        return f"unchanged ({there})"
    return (f"added {plural(changes.new, 'new session')}, and {plural(changes.turns, 'turn')} of {changes.went_on:,} "
            f"that went on; {there}, {changes.stored:,} in all")


if __name__ == "__main__":
    sys.exit(main())
