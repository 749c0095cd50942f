"""Vectors alone, told by texts"""

import runpy
from pathlib import Path

Vectors = runpy.run_path(str(Path(__file__).parents[1] / "vectors" / "adapter.py"))["Vectors"]


class Texts(Vectors):
    def search(self, query, k, now):
        return [f" {turn['text'].upper()}\n" for turn in self.best(query, k)]
