"""Dies in the third session"""

import os

from memlab_peer import adapter_class

BASE = "vectors"


class Dies(Vectors := adapter_class(BASE)):  # the base may have a name
    sessions = 0

    def add(self, turns):
        self.sessions += 1
        if self.sessions == 3:
            print("out of luck", flush=True)
            os._exit(7)
