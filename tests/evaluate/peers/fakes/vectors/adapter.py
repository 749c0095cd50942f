"""Vectors alone"""

import json
import urllib.request

LICENCE = "MIT"
SENDS = "nothing"
VARIABLES = {"QUIET": "1"}


class Vectors:
    def __init__(self, folder, url):
        self.url, self.turns = url, []

    def embed(self, texts):
        request = urllib.request.Request(f"{self.url}/embeddings", json.dumps({"input": texts}).encode())
        return [one["embedding"] for one in json.load(urllib.request.urlopen(request))["data"]]

    def add(self, turns):
        print("this must not be taken for an answer")
        self.turns += turns

    def ready(self):
        self.vectors = self.embed([turn["text"] for turn in self.turns])

    def best(self, query, k):
        asked, = self.embed([query])
        scores = [-sum(map(float.__mul__, asked, vector)) for vector in self.vectors]
        return [self.turns[place] for place in sorted(range(len(scores)), key=scores.__getitem__)[:k]]

    def search(self, query, k, now):
        return [turn["id"] for turn in self.best(query, k)]
