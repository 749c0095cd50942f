"""Never answers"""

import time

from memlab_peer import adapter_class

BASE = "vectors"


class Hangs(adapter_class(BASE)):
    def search(self, query, k, now):
        time.sleep(600)
