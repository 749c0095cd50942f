"""Command that proposes questions about your own sessions: ``memlab questions FOLDER``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memlab.data.jsonl import QUESTIONS, read
from memlab.errors import Faults, MemlabError
from memlab.questions.page import page
from memlab.questions.pool import pool, systems
from memlab.questions.propose import propose
from memlab.runtime.files import atomic_write
from memlab.store import Store
from memlab.text.display import sanitise, sanitise_lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; return 0, or 1 after a message about what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        _write(options)
    except MemlabError as fault:
        print(sanitise_lines(str(fault)), file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memlab questions",
        description="Propose questions about your own sessions, and write a page on which you mark their evidence.")
    parser.add_argument("folder", type=Path, help="folder with sessions.jsonl, as memlab import writes it")
    parser.add_argument("--depth", type=int, default=10, help="turns taken from each system's ranking (default: 10)")
    parser.add_argument("--limit", type=int, default=50, help="most questions (default: 50)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="page to write (default: FOLDER/questions.html)")
    return parser


def _write(options: argparse.Namespace) -> None:
    if options.depth < 1 or options.limit < 1:
        raise MemlabError("expected a number above 0", where="--depth, --limit")
    content = read(options.folder)
    if content.faults:
        raise Faults(content.faults)
    questions = propose(content.sessions, options.limit)
    if not questions:
        raise MemlabError("the rules find no question in it", where=str(options.folder),
                          fix=f"write {QUESTIONS} yourself (docs/your_own_chats.md)")
    pipelines = systems()
    pools = pool(content.sessions, questions, pipelines, Store(), options.depth)
    path = options.out or options.folder / "questions.html"
    try:
        atomic_write(path, page(content.sessions, questions, pools, options.depth))
    except OSError as fault:
        raise MemlabError(f"it cannot be written ({fault.strerror or fault})", where=str(path)) from fault
    sizes = {corpus: sum(len(s.turns) for s in content.sessions if s.corpus == corpus)
             for corpus in {q.corpus for q in questions}}
    pooled, whole = sum(map(len, pools)), sum(sizes[q.corpus] for q in questions)
    print(f"{len(questions)} questions; pools of {', '.join(pipelines)} to depth {options.depth}: {pooled} candidates")
    print(f"{100 * (1 - pooled / whole):.0f} % of the turns are in no pool, stay unjudged, and count as no evidence")
    print(f"open {sanitise(str(path))}, mark the evidence, and save {QUESTIONS} into {sanitise(str(options.folder))}")


if __name__ == "__main__":
    sys.exit(main())
