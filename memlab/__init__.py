"""memlab finds out what makes retrieval for long-term conversational memory work.

The public names are imported on first use: ``from memlab import Memory, AsyncMemory, Session, Pipeline, Store``,
``Synthetic``, ``compare``, ``load``, ``preset``, ``run_pipeline`` and ``search_texts``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memlab.support import uncaught

if TYPE_CHECKING:
    from memlab.data.synthetic.dataset import Synthetic
    from memlab.experiment.harness.sweep import preset, run_pipeline
    from memlab.memory.agent.async_memory import AsyncMemory
    from memlab.memory.memory import Memory, search_texts
    from memlab.memory.sessions import Session, Turn
    from memlab.pipeline.pipeline import Pipeline
    from memlab.report.notebook import compare, load
    from memlab.store.store import Store

__version__ = "0.1.0"
__all__ = ["AsyncMemory", "Memory", "Pipeline", "Session", "Store", "Synthetic", "Turn", "__version__", "compare",
           "load", "preset", "run_pipeline", "search_texts"]

_PLACES = {"AsyncMemory": "memlab.memory.agent.async_memory", "Memory": "memlab.memory.memory",
           "Pipeline": "memlab.pipeline.pipeline", "Session": "memlab.memory.sessions", "Store": "memlab.store.store",
           "Synthetic": "memlab.data.synthetic.dataset", "search_texts": "memlab.memory.memory",
           "Turn": "memlab.memory.sessions", "compare": "memlab.report.notebook", "load": "memlab.report.notebook",
           "preset": "memlab.experiment.harness.sweep", "run_pipeline": "memlab.experiment.harness.sweep"}


if uncaught.is_command():  # before the libraries of a command are imported, which takes seconds
    uncaught.watch()


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'memlab' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
