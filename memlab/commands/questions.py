"""Command that opens the page on which you mark questions about your own sessions: ``memlab questions FOLDER``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memlab.commands.judge_files import split_fields
from memlab.data.chats.refusal import export_at
from memlab.data.jsonl import QUESTIONS, SESSIONS, read
from memlab.data.questions.log import Log
from memlab.data.questions.marking import Marking
from memlab.data.questions.pool import Asked, Pools, systems
from memlab.data.questions.propose import propose, propose_by_model
from memlab.data.questions.server import PageServer, open_browser
from memlab.data.questions.site import Site
from memlab.experiment.harness.sweep import preset
from memlab.store import Store, store_at
from memlab.support.errors import Faults, MemlabError, did_you_mean
from memlab.support.help_text import Parser
from memlab.support.machine import enough_memory
from memlab.support.paths import path_argument
from memlab.support.shell import data_path
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import plural, safe_line, safe_text

_SOURCE = "Proposals come from what people state in English; ask your own questions about the rest."
_FLAGS = {"chat": "--chat", "chat.": "--chat."}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the page until Ctrl-C; return 0, or 1 after a message about what is wrong."""
    try:
        fields, words = split_fields(as_flags(sys.argv[1:] if arguments is None else arguments, _FLAGS), "--chat.")
        options = _parser().parse_args(words)
        site = _site(options, fields)
        _serve(site, options)
    except MemlabError as fault:
        print(safe_text(fault), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nended before the page was there; no file was changed")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlab questions",
        description="Open a page on this machine with proposed questions about your own sessions, on which you mark "
                    f"what answers them and add your own. It saves by itself to FOLDER/{QUESTIONS}; Ctrl-C ends it.")
    parser.add_argument("folder", type=path_argument, help="folder with sessions.jsonl, as memlab import writes it")
    parser.add_argument("--no-browser", action="store_true", help="print the page's address, and open no browser")
    parser.add_argument("--chat", metavar="NAME",
                        help="chat model that proposes questions, in place of the rules: a file of conf/chat; its "
                             "fields follow, as chat.url=URL chat.model=NAME")
    parser.add_argument("--depth", type=int, default=10, help="turns taken from each system's ranking (default: 10)")
    parser.add_argument("--limit", type=int, default=50, help="most proposed questions (default: 50)")
    return parser


@enough_memory("take fewer sessions: a folder with a part of them")
def _site(options: argparse.Namespace, chat: Mapping[str, str]) -> Site:
    """Read the folder and propose questions; candidates by meaning are looked for while the page is open."""
    if options.depth < 1 or options.limit < 1:
        raise MemlabError("expected a number above 0", where="--depth, --limit")
    folder = options.folder
    _check_folder(folder)
    content = read(folder)
    if content.faults:
        raise Faults(content.faults)
    if options.chat or chat:
        reader: Any = preset("read/answer=reader", f"chat={options.chat or 'server'}",
                             *(f"chat.{field}={value}" for field, value in chat.items())).answer
        proposed, remarks = propose_by_model(content.sessions, reader.chat, Store(), options.limit)
        for remark in remarks:
            print(remark)
    else:
        proposed = propose(content.sessions, options.limit)
    marking = Marking(folder, Log(content.sessions), proposed, content.questions)
    pools = Pools(content.sessions, systems(), store_at(None), options.depth)
    pools.ask(Asked(entry.line.corpus, entry.first) for entry in marking.entries.values())
    statuses = Counter(entry.status for entry in marking.entries.values())
    print(f"{safe_line(folder)}: {plural(len(marking.log), 'turn')} in "
          f"{plural(len(content.sessions), 'session')}; {plural(statuses['proposed'], 'question')} proposed, "
          f"{statuses['kept']} in {QUESTIONS}")
    source = "" if options.chat or chat else _SOURCE
    if source:
        print(source)
    return Site(marking, pools, {"folder": str(folder), "file": str(folder / QUESTIONS), "source": source,
                                 "next": f"memlab run +exp=systems data=custom {data_path(str(folder))}"})


def _serve(site: Site, options: argparse.Namespace) -> None:
    with PageServer(site) as server:
        print(f"open {server.url}", flush=True)
        if not options.no_browser:
            open_browser(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            marked = sum(bool(line.evidence) for line in site.marking.questions())
            print(f"\n{plural(marked, 'question')} with evidence in {safe_line(site.about['file'])}"
                  + (f"; next: {safe_line(site.about['next'])}" if marked else ""), flush=True)
            if site.pools.waiting:
                os._exit(0)  # C++ aborts a process that ends while a thread makes vectors; the files are whole


def _check_folder(folder: Path) -> None:
    """Raise MemlabError that says what to type where the path is no folder with sessions."""
    if os.path.exists(folder / SESSIONS):
        return
    if export := export_at(folder):
        raise export
    if folder.is_file():
        own = folder.name in (SESSIONS, QUESTIONS)
        raise MemlabError("it is a file; give a folder with sessions", where=str(folder),
                          fix=f"memlab questions {shlex.quote(str(folder.parent))}" if own else
                          f"memlab import {shlex.quote(str(folder))}, which names the folder that it writes")
    known = sorted(str(path.parent) for path in Path().glob(f"*/{SESSIONS}"))
    here = f"memlab questions FOLDER; {did_you_mean(str(folder), known)}, or " if known else ""
    what = f"there is no {SESSIONS} in it" if folder.is_dir() else "there is no such folder"
    raise MemlabError(what, where=str(folder),
                      fix=f"{here}memlab import EXPORT --out {shlex.quote(str(folder))} writes it from a chat export")


if __name__ == "__main__":
    sys.exit(main())
