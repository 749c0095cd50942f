"""basic-memory with a note for each turn: its full text search (for Python 3.12)"""

import asyncio
import os

from basic_memory.mcp import tools
from memlab_peer import wait

LICENCE = "AGPL-3.0"
SENDS = "nothing"
ENCODER = False
VARIABLES = {"BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false", "BASIC_MEMORY_NO_PROMOS": "1", "LOGURU_LEVEL": "WARNING"}


class Adapter:
    def __init__(self, folder, url):
        self.project = os.path.basename(folder)
        wait(tools.create_memory_project(self.project, folder))

    def add(self, turns):
        for turn in turns:
            wait(tools.write_note(turn["id"], turn["text"], "turns", project=self.project))

    def ready(self):
        wait(asyncio.sleep(5))  # it indexes in the background

    def search(self, query, k, now):
        found = wait(tools.search_notes(query, project=self.project, page_size=k, output_format="json"))
        return [one["title"] for one in found["results"]]
