"""powermem in SQLite, turns as they are (infer=False): its fusion of vectors and full text, with memlab's vectors"""

from powermem import Memory

LICENCE = "Apache-2.0"
SENDS = "nothing, unless its telemetry is switched on"


class Adapter:
    def __init__(self, folder, url):
        server = {"api_key": "none", "openai_base_url": url}
        self.memory = Memory({
            "vector_store": {"provider": "sqlite", "config": {"database_path": f"{folder}/memory.db"}},
            "embedder": {"provider": "openai", "config": {**server, "model": "document", "embedding_dims": 384}},
            "llm": {"provider": "openai", "config": {**server, "model": "chat"}}})

    def add(self, turns):
        for turn in turns:
            self.memory.add(turn["text"], user_id="user", metadata={"turn": turn["id"]}, infer=False)

    def search(self, query, k, now):
        found = self.memory.search(query, user_id="user", limit=k)
        return [one["metadata"]["turn"] for one in found["results"]]
