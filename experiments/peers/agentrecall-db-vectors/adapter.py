"""Memory in one SQLite file: full text search and memlab's vectors, fused by its default (reciprocal ranks)"""

import json
import urllib.request

from agentrecall import Memory

LICENCE = "MIT"
SENDS = "nothing"


class Encoder:
    dim = 384

    def __init__(self, url):
        self.url = url

    def embed(self, texts):
        request = urllib.request.Request(f"{self.url}/embeddings", json.dumps({"input": texts}).encode())
        return [one["embedding"] for one in json.load(urllib.request.urlopen(request))["data"]]


class Adapter:
    def __init__(self, folder, url):
        self.memory = Memory(f"{folder}/memory.db", embeddings=True, embedder=Encoder(url))

    def add(self, turns):
        self.memory.add_many([{"content": turn["text"], "metadata": {"turn": turn["id"]}} for turn in turns])

    def search(self, query, k, now):
        return [hit.metadata["turn"] for hit in self.memory.search(query, k=k)]

    def close(self):
        self.memory.close()
