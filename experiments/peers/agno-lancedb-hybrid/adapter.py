"""Agno's store of documents in lancedb, its hybrid of full text and memlab's vectors"""

from agno.knowledge.document import Document
from agno.knowledge.embedder.openai_like import OpenAILikeEmbedder
from agno.vectordb.lancedb import LanceDb
from agno.vectordb.search import SearchType

LICENCE = "Apache-2.0"
SENDS = "runs of its agents, unless AGNO_TELEMETRY is false"
VARIABLES = {"AGNO_TELEMETRY": "false"}


class Adapter:
    def __init__(self, folder, url):
        encoder = OpenAILikeEmbedder(id="document", base_url=url, api_key="none", dimensions=384)
        self.table = LanceDb(folder, table_name="turns", embedder=encoder, search_type=SearchType.hybrid)

    def add(self, turns):
        self.table.insert(turns[0]["session"], [Document(turn["text"], turn["id"], turn["id"]) for turn in turns])

    def search(self, query, k, now):
        return [found.name for found in self.table.search(query, k)]
