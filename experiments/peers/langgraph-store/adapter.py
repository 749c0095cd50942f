"""LangGraph's store in memory, as langmem uses it, with memlab's vectors"""

import json
import urllib.request

from langgraph.store.memory import InMemoryStore

LICENCE = "MIT"
SENDS = "traces to its maker, if LANGSMITH_TRACING is set"
VARIABLES = {"LANGSMITH_TRACING": "false"}


class Adapter:
    def __init__(self, folder, url):
        self.url = url
        self.store = InMemoryStore(index={"dims": 384, "embed": self.embed, "fields": ["text"]})

    def embed(self, texts):
        request = urllib.request.Request(f"{self.url}/embeddings", json.dumps({"input": list(texts)}).encode())
        return [one["embedding"] for one in json.load(urllib.request.urlopen(request))["data"]]

    def add(self, turns):
        for turn in turns:  # a batch with the same text twice raises an error in its index
            self.store.put(("turns",), turn["id"], {"text": turn["text"]})

    def search(self, query, k, now):
        return [item.key for item in self.store.search(("turns",), query=query, limit=k)]
