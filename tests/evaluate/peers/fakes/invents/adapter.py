"""Returns texts that nobody said"""

import runpy
from pathlib import Path

Vectors = runpy.run_path(str(Path(__file__).parents[1] / "vectors" / "adapter.py"))["Vectors"]


class Invents(Vectors):
    def search(self, query, k, now):
        return ["Nobody has ever said these words here."] * 3
