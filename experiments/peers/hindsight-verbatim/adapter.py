"""Hindsight without a chat model (chunks as they are): its four searches fused by ranks, with memlab's vectors"""

import asyncio
import os
from datetime import datetime

from hindsight_api import MemoryEngine
from hindsight_api.engine.memory_engine import Budget
from hindsight_api.models import RequestContext

LICENCE = "MIT"
SENDS = "nothing"
VARIABLES = {
    "HINDSIGHT_API_LLM_PROVIDER": "none", "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
    "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai", "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "none",
    "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": "document"}


class Adapter:
    def __init__(self, folder, url):
        if os.getuid() == 0:  # its database refuses root
            for place in (folder, os.environ["HOME"], f"{os.environ['HOME']}/models"):
                os.chown(place, 65534, 65534)
            os.setgid(65534)
            os.setuid(65534)
        self.loop, self.who, self.turns = asyncio.new_event_loop(), RequestContext(), {}
        self.engine = MemoryEngine(db_url="pg0")
        self.bank = os.path.basename(folder)
        self.wait(self.engine.initialize())

    def wait(self, work):
        return self.loop.run_until_complete(work)

    def add(self, turns):
        self.wait(self.engine.retain_batch_async(self.bank, [
            {"content": turn["text"], "event_date": datetime.fromisoformat(turn["time"]), "document_id": turn["id"]}
            for turn in turns], request_context=self.who))

    def search(self, query, k, now):
        found = self.wait(self.engine.recall_async(self.bank, query, budget=Budget.MID, max_tokens=20_000,
                                                   request_context=self.who))
        return [one.text for one in found.results][:k]

    def close(self):
        self.wait(self.engine.close())
