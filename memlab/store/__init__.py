"""The store of vectors, pair scores and completions."""

from memlab.store.store import Store, store_at

__all__ = ["Store", "store_at"]
