"""mem0 with faiss, turns as they are (infer=False): vectors only, since its BM25 wants qdrant and files from a hub"""

import os

from mem0 import Memory

LICENCE = "Apache-2.0"
SENDS = "events to its maker, unless MEM0_TELEMETRY is False"
VARIABLES = {"MEM0_TELEMETRY": "False"}


class Adapter:
    def __init__(self, folder, url):
        server = {"api_key": "none", "openai_base_url": url}
        self.infer = "MEMLAB_CHAT" in os.environ
        self.memory = Memory.from_config({
            "vector_store": {"provider": "faiss", "config": {"path": f"{folder}/faiss", "embedding_model_dims": 384}},
            "embedder": {"provider": "openai", "config": {**server, "model": "document", "embedding_dims": 384}},
            "llm": {"provider": "openai", "config": {**server, "model": "chat"}},
            "history_db_path": f"{folder}/history.db"})

    def add(self, turns):
        for turn in turns:
            self.memory.add(turn["text"], user_id="user", metadata={"turn": turn["id"]}, infer=self.infer)

    def search(self, query, k, now):
        found = self.memory.search(query, top_k=k, filters={"user_id": "user"})
        return [one["metadata"]["turn"] for one in found["results"]]

    def close(self):
        self.memory.close()
