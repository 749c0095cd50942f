"""Command that proposes questions about your own sessions: ``memlab questions FOLDER``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from memlab.data.jsonl import QUESTIONS, read
from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.harness.sweep import preset
from memlab.judge.command import split_fields
from memlab.questions.pool import page, pool, systems
from memlab.questions.propose import ProposedQuestion, propose, propose_by_model
from memlab.runtime.files import atomic_write
from memlab.runtime.machine import enough_memory
from memlab.runtime.paths import path_argument
from memlab.runtime.terminal import as_flags, print
from memlab.store import Store
from memlab.text.display import sanitise, sanitise_lines

_FLAGS = {"chat": "--chat", "chat.": "--chat."}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; return 0, or 1 after a message about what is wrong."""
    try:
        fields, words = split_fields(as_flags(sys.argv[1:] if arguments is None else arguments, _FLAGS), "--chat.")
        _write(_parser().parse_args(words), fields)
    except MemlabError as fault:
        print(sanitise_lines(str(fault)), file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memlab questions",
        description="Propose questions about your own sessions, and write a page on which you mark their evidence.")
    parser.add_argument("folder", type=path_argument, help="folder with sessions.jsonl, as memlab import writes it")
    parser.add_argument("--ask", action="append", default=[], metavar="QUESTION",
                        help="a question of your own, before the proposed ones; may be given several times")
    parser.add_argument("--corpus", metavar="NAME", help="whose sessions --ask is about, if there are several corpora")
    parser.add_argument("--chat", metavar="NAME",
                        help="chat model that proposes questions, in place of the rules: a file of conf/chat; its "
                             "fields follow, as chat.url=URL chat.model=NAME")
    parser.add_argument("--depth", type=int, default=10, help="turns taken from each system's ranking (default: 10)")
    parser.add_argument("--limit", type=int, default=50, help="most questions (default: 50)")
    parser.add_argument("--out", type=path_argument, metavar="FILE",
                        help="page to write (default: FOLDER/questions.html)")
    return parser


@enough_memory("take fewer sessions: a folder with a part of them")
def _write(options: argparse.Namespace, chat: Mapping[str, str]) -> None:
    if options.depth < 1 or options.limit < 1:
        raise MemlabError("expected a number above 0", where="--depth, --limit")
    content = read(options.folder)
    if content.faults:
        raise Faults(content.faults)
    questions = _own(options.ask, options.corpus, list(dict.fromkeys(s.corpus for s in content.sessions)))
    if options.chat or chat:
        reader: Any = preset("read/answer=reader", f"chat={options.chat or 'server'}",
                             *(f"chat.{field}={value}" for field, value in chat.items())).answer
        proposed, remarks = propose_by_model(content.sessions, reader.chat, Store(), options.limit)
        for remark in remarks:
            print(remark)
    else:
        proposed = propose(content.sessions, options.limit)
    questions = [*questions, *proposed][:options.limit]
    if not questions:
        raise MemlabError("no question is proposed" if options.chat or chat else "the rules find no question in it",
                          where=str(options.folder),
                          fix=f'ask your own (--ask "Where did I park?"), or write {QUESTIONS} yourself '
                              "(docs/your_own_chats.md)")
    pipelines = systems()
    pools = pool(content.sessions, questions, pipelines, Store(), options.depth)
    path = options.out or options.folder / "questions.html"
    try:
        atomic_write(path, page(content.sessions, questions, pools, options.depth))
    except OSError as fault:
        raise MemlabError(f"it cannot be written ({fault.strerror or fault})", where=str(path)) from fault
    pooled, whole = sum(map(len, pools)), sum(len(s.turns) for s in content.sessions)
    places = {(q.corpus, c.session, c.turn) for q, candidates in zip(questions, pools) for c in candidates}
    print(f"{len(questions)} questions; pools of {', '.join(pipelines)} to depth {options.depth}: {pooled} candidates")
    print(f"{100 * (1 - len(places) / whole):.0f} % of the turns are in no pool; what is not in a question's pool "
          "stays unjudged and counts as no evidence for it")
    if (options.folder / QUESTIONS).exists():
        print(f"{sanitise(str(options.folder / QUESTIONS))} is there already, and the page saves a file of that name: "
              "add the new lines to yours")
    print(f"open {sanitise(str(path))}, mark the evidence, and save {QUESTIONS} into {sanitise(str(options.folder))}")


def _own(texts: Sequence[str], corpus: str | None, corpora: Sequence[str]) -> list[ProposedQuestion]:
    """Return a person's own questions; raise MemlabError unless it is clear which corpus they are about."""
    if corpus is None and len(corpora) > 1 and texts:
        raise MemlabError(f"these sessions are of {len(corpora)} corpora", where="--ask",
                          fix=f"--corpus NAME; {did_you_mean('', corpora)}")
    if corpus is not None and corpus not in corpora:
        raise MemlabError(f"there is no corpus '{corpus}'", where="--corpus", fix=did_you_mean(corpus, corpora))
    if any(not text.strip() for text in texts):
        raise MemlabError("the question is blank", where="--ask")
    return [ProposedQuestion(corpus or corpora[0], " ".join(text.split())) for text in dict.fromkeys(texts)]


if __name__ == "__main__":
    sys.exit(main())
