"""LangGraph's store in memory, as langmem uses it, with memlab's vectors"""

from langgraph.store.memory import InMemoryStore
from memlab_peer import embed

LICENCE = "MIT"
SENDS = "traces to its maker, if LANGSMITH_TRACING is set"
VARIABLES = {"LANGSMITH_TRACING": "false"}


class Adapter:
    def __init__(self, folder, url):
        self.store = InMemoryStore(index={"dims": 384, "embed": embed, "fields": ["text"]})

    def add(self, turns):
        for turn in turns:  # a batch with the same text twice raises an error in its index
            self.store.put(("turns",), turn["id"], {"text": turn["text"]})

    def search(self, query, k, now):
        return [item.key for item in self.store.search(("turns",), query=query, limit=k)]
