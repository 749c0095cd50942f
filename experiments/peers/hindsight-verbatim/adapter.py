"""Hindsight without a chat model (chunks as they are): its four searches fused by ranks, with memlab's vectors"""

import os
from datetime import datetime

from hindsight_api import MemoryEngine
from hindsight_api.engine.memory_engine import Budget
from hindsight_api.models import RequestContext
from memlab_peer import wait

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
        self.who, self.bank, self.engine = RequestContext(), os.path.basename(folder), MemoryEngine(db_url="pg0")
        wait(self.engine.initialize())

    def add(self, turns):
        wait(self.engine.retain_batch_async(self.bank, [
            {"content": turn["text"], "event_date": datetime.fromisoformat(turn["time"]), "document_id": turn["id"]}
            for turn in turns], request_context=self.who))

    def search(self, query, k, now):
        found = wait(self.engine.recall_async(self.bank, query, budget=Budget.MID, max_tokens=20_000,
                                              request_context=self.who))
        return [one.text for one in found.results][:k]

    def close(self):
        wait(self.engine.close())
