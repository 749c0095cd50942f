"""Memory server for assistants, its SQLite storage: its hybrid of BM25 and memlab's vectors"""

from memlab_peer import adapter_class, wait

BASE = "mcp-memory-service"
LICENCE = "Apache-2.0"
SENDS = "nothing"


class Adapter(adapter_class(BASE)):
    def search(self, query, k, now):
        return [found.memory.content for found in wait(self.storage.retrieve_hybrid(query, k))]
