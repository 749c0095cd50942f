"""Embeddings database: BM25 and vectors in equal parts (hybrid=True), with memlab's vectors"""

import numpy
from memlab_peer import embed
from txtai import Embeddings

LICENCE = "Apache-2.0"
SENDS = "nothing"


class Adapter:
    def __init__(self, folder, url):
        self.folder, self.rows = folder, []
        self.embeddings = Embeddings({
            "method": "external", "hybrid": True, "transform": lambda texts: numpy.float32(embed(texts))})

    def add(self, turns):
        self.rows += [(turn["id"], turn["text"], None) for turn in turns]

    def ready(self):
        self.embeddings.index(self.rows)
        self.embeddings.save(self.folder)

    def search(self, query, k, now):
        return [turn for turn, _ in self.embeddings.search(query, k)]

    def close(self):
        self.embeddings.close()
