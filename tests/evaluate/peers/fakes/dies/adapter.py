"""Dies in the third session"""

import os
import runpy
from pathlib import Path

Vectors = runpy.run_path(str(Path(__file__).parents[1] / "vectors" / "adapter.py"))["Vectors"]


class Dies(Vectors):
    sessions = 0

    def add(self, turns):
        self.sessions += 1
        if self.sessions == 3:
            print("out of luck", flush=True)
            os._exit(7)
