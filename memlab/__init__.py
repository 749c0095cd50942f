"""Toolkit for research on retrieval in long-term conversational memory.

The public names are imported on first use, as in ``from memlab import Memory, Session``: scripts, notebooks and
plug-ins need no inner module for them.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memlab.support import uncaught

if TYPE_CHECKING:
    from memlab.data.benchmarks import Builder
    from memlab.data.dataset import GroupBy
    from memlab.data.readers import sha256
    from memlab.data.synthetic.dataset import Synthetic
    from memlab.evaluate.summary import averages, per_question
    from memlab.experiment.harness.sweep import preset, run_pipeline
    from memlab.memory.memory import Memory, search_texts
    from memlab.memory.sessions import Session, Turn
    from memlab.models.local.embedder import SentenceEmbedder
    from memlab.pipeline.pipeline import Pipeline
    from memlab.pipeline.stage import LocalPath, stage
    from memlab.pipeline.tables import Tables, with_text
    from memlab.pipeline.transcript import NOTE, fence
    from memlab.report.notebook import compare, load
    from memlab.stages.functions import fusion, reranker, retriever
    from memlab.stages.judge.cases import NO_GOLD, Case, RuleJudge, Verdict
    from memlab.stages.judge.rules import abstains
    from memlab.stages.rank.rerank import PoolReranker, passages_of
    from memlab.stages.rank.score import Score
    from memlab.stages.rank.select import Budget, Fixed
    from memlab.stages.search.bm25 import BM25
    from memlab.stages.search.dense import Dense
    from memlab.stages.search.hits import HitsBuilder, pools
    from memlab.stages.write.chunk import RoundChunker
    from memlab.store.store import Store
    from memlab.support.errors import MemlabError

__version__ = "0.1.0"
__all__ = ["BM25", "NOTE", "NO_GOLD", "Budget", "Builder", "Case", "Dense", "Fixed", "GroupBy",
           "HitsBuilder", "LocalPath", "MemlabError", "Memory", "Pipeline", "PoolReranker", "RoundChunker", "RuleJudge",
           "Score", "SentenceEmbedder", "Session", "Store", "Synthetic", "Tables", "Turn", "Verdict", "__version__",
           "abstains", "averages", "compare", "fence", "fusion", "load", "passages_of", "per_question", "pools",
           "preset", "reranker", "retriever", "run_pipeline", "search_texts", "sha256", "stage", "with_text"]

_NAMES = {"memlab.data.benchmarks": "Builder", "memlab.data.dataset": "GroupBy", "memlab.data.readers": "sha256",
          "memlab.data.synthetic.dataset": "Synthetic", "memlab.evaluate.summary": "averages per_question",
          "memlab.experiment.harness.sweep": "preset run_pipeline",
          "memlab.memory.memory": "Memory search_texts", "memlab.memory.sessions": "Session Turn",
          "memlab.models.local.embedder": "SentenceEmbedder", "memlab.pipeline.pipeline": "Pipeline",
          "memlab.pipeline.stage": "LocalPath stage", "memlab.pipeline.tables": "Tables with_text",
          "memlab.pipeline.transcript": "NOTE fence", "memlab.report.notebook": "compare load",
          "memlab.stages.functions": "fusion reranker retriever",
          "memlab.stages.judge.cases": "NO_GOLD Case RuleJudge Verdict", "memlab.stages.judge.rules": "abstains",
          "memlab.stages.rank.rerank": "PoolReranker passages_of", "memlab.stages.rank.score": "Score",
          "memlab.stages.rank.select": "Budget Fixed", "memlab.stages.search.bm25": "BM25",
          "memlab.stages.search.dense": "Dense", "memlab.stages.search.hits": "HitsBuilder pools",
          "memlab.stages.write.chunk": "RoundChunker", "memlab.store.store": "Store",
          "memlab.support.errors": "MemlabError"}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


if uncaught.is_command():  # before the libraries of a command are imported, which takes seconds
    uncaught.watch()
    gc.set_threshold(500_000, 50, 50)  # a tenth of a start is the search for garbage, of which imports make little


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'memlab' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
