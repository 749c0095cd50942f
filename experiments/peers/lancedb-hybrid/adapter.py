"""Vector database with full text search, both fused by its default (reciprocal ranks), with memlab's vectors"""

import lancedb
from memlab_peer import embed

LICENCE = "Apache-2.0"
SENDS = "nothing"


class Adapter:
    def __init__(self, folder, url):
        self.database, self.table = lancedb.connect(folder), None

    def add(self, turns):
        vectors = embed([turn["text"] for turn in turns])
        rows = [{"id": turn["id"], "text": turn["text"], "vector": vector} for turn, vector in zip(turns, vectors)]
        if self.table is None:
            self.table = self.database.create_table("turns", rows)
        else:
            self.table.add(rows)

    def ready(self):
        self.table.create_fts_index("text")

    def search(self, query, k, now):
        found = self.table.search(query_type="hybrid").vector(embed([query])[0]).text(query).limit(k)
        return [row["id"] for row in found.to_list()]
