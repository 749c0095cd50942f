"""Vector database, as a local collection with memlab's vectors (its own encoder is a download)"""

import chromadb
from memlab_peer import embed

LICENCE = "Apache-2.0"
SENDS = "usage counts to its maker, unless ANONYMIZED_TELEMETRY is False"
VARIABLES = {"ANONYMIZED_TELEMETRY": "False"}


class Adapter:
    def __init__(self, folder, url):
        self.collection = chromadb.PersistentClient(folder).create_collection("turns", embedding_function=None)

    def add(self, turns):
        texts = [turn["text"] for turn in turns]
        self.collection.add([turn["id"] for turn in turns], embed(texts), documents=texts)

    def search(self, query, k, now):
        return self.collection.query(embed([query]), n_results=k)["ids"][0]
