"""mempalace with a drawer for each turn, as it is: vectors, then its ranking by words, with memlab's vectors"""

import os

from mempalace.palace import get_collection
from mempalace.searcher import search_memories

LICENCE = "MIT"
SENDS = "nothing"
VARIABLES = {"MEMPALACE_EMBEDDING_MODEL": "openai-compat", "MEMPALACE_EMBEDDING_API_MODEL": "document"}


class Adapter:
    def __init__(self, folder, url):
        os.environ["MEMPALACE_EMBEDDING_API_URL"] = url
        self.folder, self.drawers = folder, get_collection(folder, create=True)

    def add(self, turns):
        self.drawers.upsert(documents=[turn["text"] for turn in turns], ids=[turn["id"] for turn in turns], metadatas=[
            {"wing": "chat", "room": "talk", "source_file": turn["id"], "filed_at": turn["time"]} for turn in turns])

    def search(self, query, k, now):
        return [found["text"] for found in search_memories(query, self.folder, n_results=k)["results"]]
