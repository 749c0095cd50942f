"""Memory in one SQLite file: full text search and memlab's vectors, fused by its default (reciprocal ranks)"""

from agentrecall import Memory
from memlab_peer import adapter_class, embed

BASE = "agentrecall-db"
LICENCE = "MIT"
SENDS = "nothing"


class Encoder:
    dim = 384
    embed = staticmethod(embed)


class Adapter(adapter_class(BASE)):
    def __init__(self, folder, url):
        self.memory = Memory(f"{folder}/memory.db", embeddings=True, embedder=Encoder())
