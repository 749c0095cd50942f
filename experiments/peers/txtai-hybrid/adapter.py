"""Embeddings database: BM25 and vectors in equal parts (hybrid=True), with memlab's vectors"""

import json
import urllib.request

import numpy
from txtai import Embeddings

LICENCE = "Apache-2.0"
SENDS = "nothing"


class Adapter:
    def __init__(self, folder, url):
        self.folder, self.url, self.rows = folder, url, []
        self.embeddings = Embeddings({
            "method": "external", "hybrid": True,
            "transform": lambda texts: self.embed(texts)})  # noqa: PLW0108 (it would call a method without arguments)

    def embed(self, texts):
        request = urllib.request.Request(f"{self.url}/embeddings", json.dumps({"input": list(texts)}).encode())
        reply = json.load(urllib.request.urlopen(request))
        return numpy.array([one["embedding"] for one in reply["data"]], dtype=numpy.float32)

    def add(self, turns):
        self.rows += [(turn["id"], turn["text"], None) for turn in turns]

    def ready(self):
        self.embeddings.index(self.rows)
        self.embeddings.save(self.folder)

    def search(self, query, k, now):
        return [turn for turn, _ in self.embeddings.search(query, k)]

    def close(self):
        self.embeddings.close()
