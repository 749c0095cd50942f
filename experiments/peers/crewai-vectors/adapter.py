"""CrewAI's memory in lancedb, all fields given so that no chat model is asked: shallow recall, with memlab's vectors"""

from crewai.memory.unified_memory import Memory
from memlab_peer import embed

LICENCE = "MIT"
SENDS = "traces to its maker, unless CREWAI_DISABLE_TELEMETRY is true"
VARIABLES = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}


class Adapter:
    def __init__(self, folder, url):
        self.memory = Memory(storage=folder, embedder=embed, consolidation_threshold=1.0)

    def add(self, turns):
        for turn in turns:
            self.memory.remember(turn["text"], "/", ["turn"], {"turn": turn["id"]}, 0.5)

    def search(self, query, k, now):
        return [found.record.metadata["turn"] for found in self.memory.recall(query, limit=k, depth="shallow")]

    def close(self):
        self.memory.close()
