"""Vectors alone"""

from memlab_peer import embed

LICENCE = "MIT"
SENDS = "nothing"
VARIABLES = {"QUIET": "1"}


class Vectors:
    def __init__(self, folder, url):
        self.turns = []

    def add(self, turns):
        print("this must not be taken for an answer")
        self.turns += turns

    def ready(self):
        self.vectors = embed([turn["text"] for turn in self.turns])

    def best(self, query, k):
        asked, = embed([query])
        scores = [-sum(map(float.__mul__, asked, vector)) for vector in self.vectors]
        return [self.turns[place] for place in sorted(range(len(scores)), key=scores.__getitem__)[:k]]

    def search(self, query, k, now):
        return [turn["id"] for turn in self.best(query, k)]
