"""Returns texts that nobody said"""

from memlab_peer import adapter_class

BASE = "vectors"


class Invents(adapter_class(BASE)):
    def search(self, query, k, now):
        return ["Nobody has ever said these words here."] * 3
