"""Memory in one SQLite file: full text search (FTS5), its default"""

from agentrecall import Memory

LICENCE = "MIT"
SENDS = "nothing"
ENCODER = False


class Adapter:
    def __init__(self, folder, url):
        self.memory = Memory(f"{folder}/memory.db")

    def add(self, turns):
        self.memory.add_many([{"content": turn["text"], "metadata": {"turn": turn["id"]}} for turn in turns])

    def search(self, query, k, now):
        return [hit.metadata["turn"] for hit in self.memory.search(query, k=k)]

    def close(self):
        self.memory.close()
