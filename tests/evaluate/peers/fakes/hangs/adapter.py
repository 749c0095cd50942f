"""Never answers"""

import runpy
import time
from pathlib import Path

Vectors = runpy.run_path(str(Path(__file__).parents[1] / "vectors" / "adapter.py"))["Vectors"]


class Hangs(Vectors):
    def search(self, query, k, now):
        time.sleep(600)
