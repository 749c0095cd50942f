"""Published memory packages on your data: ``memlab peers list``, ``memlab peers run NAME... data=locomo``.

Each peer runs as it comes, in a virtual environment of its own, without a network, and what it finds is scored as
``memlab score`` does. NAME is a peer of ``list``, or the path of a folder of your own (docs/peers.md). Words of the
form ``key=value`` are those of ``memlab score``; ``embedder=`` chooses the encoder that peers may ask, and ``chat=``,
``chat.url=`` the model for packages that ask one (their rows end in +chat). A peer that fails is a row as well, and the
others go on. memlab's own systems are arms of the same report:

    memlab run +exp=peers data=locomo data.path=FILE
    memlab peers run bm25s lancedb-hybrid data=locomo data.path=FILE
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memlab.commands.score import NOT_RUN, score
from memlab.evaluate.export import run_lines
from memlab.evaluate.peers.measure import PeerResult, memories, result_file, run_peer
from memlab.evaluate.peers.models import PeerModels
from memlab.evaluate.peers.peer import find_peer, shipped_peers
from memlab.evaluate.peers.process import PeerFailure
from memlab.evaluate.score.arm import About
from memlab.evaluate.score.runs import read_run
from memlab.experiment.config.plugins import NO_CHECKOUT
from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import preset, read
from memlab.store import store_at
from memlab.support.errors import Faults, MemlabError
from memlab.support.files import atomic_write, write_json
from memlab.support.foreign import read_json
from memlab.support.help_text import Parser
from memlab.support.terminal import print
from memlab.support.text.display import plural, safe_line, safe_text

BUDGET = ("rank/select=budget", "rank.select.tokens=1000", "rank.select.twin=false", "track=none")
"""Settings of all rows, before those of the command line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 1 on an error, 2 if the configuration is faulty."""
    parser = Parser(prog="memlab peers", description=__doc__)
    parser.add_argument("command", choices=["list", "run"])
    parser.add_argument("words", nargs="*", metavar="NAME | key=value", help="peers, and memlab's configuration")
    parser.add_argument("--k", type=int, default=200, help="results asked of each peer (default 200)")
    parser.add_argument("--limit", type=float, default=1800, metavar="S",
                        help="seconds for a session to be added, or for all questions of a history (default 1800)")
    parser.add_argument("--experiment", default="peers", help="folder under runs/ (default peers)")
    parser.add_argument("--python", default=sys.executable, help="interpreter for environments that are made")
    given = parser.parse_intermixed_args(argv)
    try:
        return _list() if given.command == "list" else _run(given)
    except MemlabError as error:
        print(f"memlab: {safe_text(error)}", file=sys.stderr)
        return 2 if isinstance(error, Faults) else 1


def _list() -> int:
    for name, peer in (known := shipped_peers()).items():
        about, size = peer.declared, peer.record().get("bytes")
        print(f"{name}: {about['ABOUT']}\n  {peer.version}, {'' if peer.installed() else 'not '}installed"
              f"{f', {size / 1e6:,.0f} MB' if size else ''}, licence {about['LICENCE']}; sends home: {about['SENDS']}")
    if not known:
        print(f"give the path of a peer's folder: {NO_CHECKOUT}")
    return 0


def _run(given: Namespace) -> int:
    words = [word for word in given.words if "=" in word]
    peers = [find_peer(word) for word in dict.fromkeys(given.words) if word not in words]
    if not peers:
        raise MemlabError("no peer is named", fix="memlab peers list names those of this checkout")
    own = [word for word in words if not word.startswith(("embedder", "chat"))]
    settings = [word for word in BUDGET if not any(one.startswith(word.partition("=")[0]) for one in own)] + own
    sweep = read(settings, without=NOT_RUN)
    arm = replace(sweep.arms[0], experiment=given.experiment)
    embedder, chat_words = ([word for word in words if word.startswith(part)] for part in ("embedder", "chat"))
    dense: Any = preset("search/lexical=none", *embedder).dense
    reader: Any = preset("read/answer=reader", *chat_words).answer if chat_words else None
    chat = reader and reader.chat
    described = {"data": arm.dataset.identity(), "encoder": dense.embedder.identity(), "k": given.k,
                 "chat": chat and chat.identity()}
    asked, models = list(memories(load(arm.dataset))), PeerModels(store_at(sweep.settings.store), dense.embedder, chat)
    about, failed, place = dict[str, About](), dict[str, str](), arm.arms_folder() / "rankings"
    for peer in peers:
        name, kept = f"{peer.folder.name}{'+chat' if chat else ''}", result_file(peer, described)
        try:
            if not kept.is_file():
                print(f"{name}: {peer.version}, {plural(len(asked), 'memory', 'memories')}", flush=True)
                peer.install(given.python)
                kept = result_file(peer, described)  # its versions are known now
                run_peer(peer, asked, models, kept, chat is not None, given.k, given.limit)
            result = PeerResult(**read_json(kept))
            if not any(result.ranked.values()):
                raise PeerFailure(f"none of its {result.figures['returned']:,} results is a turn of the history")
        except (PeerFailure, MemlabError) as error:
            failed[name] = safe_line(str(error))
            print(f"{name} failed: {failed[name]}")
            continue
        rows = ((topic, document, rank, 1 / rank) for topic, documents in result.ranked.items()
                for rank, document in enumerate(documents, 1))
        atomic_write(place / f"{name}.trec", run_lines(rows, name))
        write_json(place / f"{name}.json", result._replace(ranked={})._asdict())
        about[name] = About(result.notes(name, peer.version), {s: result.figures[s] for s in ("adding", "asking")})
        print(*about[name].notes, sep="\n")
    if not about:
        raise MemlabError("no peer has a ranking", fix="each one's reason is above")
    files = [place / f"{name}.trec" for name in about]
    return score(files, read_run, settings, given.experiment, about=about, failed=failed)


if __name__ == "__main__":
    raise SystemExit(main())
