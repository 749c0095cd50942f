"""The preset of a live memory and of ``memlab ask`` where none is chosen: ``best``.

A memory that holds single vectors and no token vectors was made with the former default, ``plain``, and keeps it: with
another preset its texts would be encoded anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memlab.learn.ranker.stage import LearnedScore
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import LateInteraction
from memlab.pipeline.pipeline import Pipeline, nothing
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.late_index import LateIndex
from memlab.stages.write.chunk import Levels, RoundChunker, SessionChunker, TurnChunker

_CHOICE = re.compile(r"[+~]*(system|exp)=")


def best() -> Pipeline:
    """Return the pipeline of conf/system/best.yaml, half a second of the processor sooner than Hydra composes it."""
    embedder: Any = SentenceEmbedder(name="minilm_memory", max_length=256, adapter="memory")
    matcher: Any = LateInteraction(embedder=embedder)
    weights = {"late": 2.0, "late_window": 1.0, "late_session": 0.75, "lexical:round": 0.25, "lexical:session": 0.25,
               "lexical:session.user": 0.25, "lexical:turn.user": 0.0, "lexical:turn.assistant": 1.5}
    return Pipeline(
        chunk=Levels(chunkers=(TurnChunker(roles=("user",)), TurnChunker(roles=("assistant",)), RoundChunker(),
                               SessionChunker(roles=("user",)), SessionChunker())),
        dense=nothing("dense"), lexical=BM25(unmatched=True),
        late=LateIndex(matcher=matcher, kinds=("turn.user",)),
        score=LearnedScore(model="shipped", encoder=embedder, weights=weights))


def pipeline_of(folder: Path, arguments: Sequence[str] = ()) -> Pipeline:
    """Return the pipeline that arguments of ``memlab run`` choose for a memory."""
    if arguments:
        from memlab.experiment.harness.sweep import preset  # with Hydra, half a second of the processor

        return preset(*with_system(arguments, folder))
    return Pipeline() if _was_plain(folder) else best()


def with_system(arguments: Sequence[str], folder: Path | None = None) -> list[str]:
    """Return arguments of ``memlab run`` with the preset of a memory, or ``best``, unless they choose a system.

    >>> with_system(["rank.select.k=5"]), with_system(["system=gimli"])
    (['system=best', 'rank.select.k=5'], ['system=gimli'])
    """
    if any(map(_CHOICE.match, arguments)):
        return [*arguments]
    return [f"system={'plain' if folder and _was_plain(folder) else 'best'}", *arguments]


def _was_plain(folder: Path) -> bool:
    """Return whether a memory holds vectors of whole texts alone."""
    vectors, tokens = (any(folder.glob(f"store/{kind}/*/*.segment")) for kind in ("vectors", "tokens"))
    return vectors and not tokens
