"""Memory server for assistants, its SQLite storage: its default search, with memlab's vectors"""

import os

from mcp_memory_service.models.memory import Memory
from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
from mcp_memory_service.utils.hashing import generate_content_hash
from memlab_peer import wait

LICENCE = "Apache-2.0"
SENDS = "nothing"


class Adapter:
    def __init__(self, folder, url):
        os.environ["MCP_EXTERNAL_EMBEDDING_URL"] = f"{url}/embeddings"
        self.storage = SqliteVecMemoryStorage(f"{folder}/memory.db")
        wait(self.storage.initialize())

    def add(self, turns):
        wait(self.storage.store_batch([
            Memory(turn["text"], generate_content_hash(turn["text"]), created_at_iso=turn["time"]) for turn in turns]))

    def search(self, query, k, now):
        return [found.memory.content for found in wait(self.storage.retrieve(query, k))]

    def close(self):
        wait(self.storage.close())
