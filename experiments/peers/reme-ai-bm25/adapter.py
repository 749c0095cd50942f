"""ReMe without its agent: a file for each turn in its workspace, and its default search (BM25)"""

from pathlib import Path

from memlab_peer import wait
from reme import ReMe
from reme.config import resolve_app_config

LICENCE = "Apache-2.0"
SENDS = "nothing"
ENCODER = False


class Adapter:
    def __init__(self, folder, url):
        config = resolve_app_config(log_config=False, workspace_dir=folder)
        for agent in ("as_llm", "agent_wrapper"):
            del config["components"][agent]
        steps = [{"backend": "update_index_step", "persist": False}]  # those of its job that watches files
        config["jobs"] = {"search": config["jobs"]["search"], "index": {"backend": "base", "steps": steps}}
        self.app, self.folder = ReMe(**config), folder
        wait(self.app.start())

    def add(self, turns):
        folder = Path(self.folder, "daily", turns[0]["time"][:10])
        folder.mkdir(parents=True, exist_ok=True)
        for turn in turns:
            (folder / f"{turn['id']}.md").write_text(turn["text"], encoding="utf-8")
        changes = [{"path": str(folder / f"{turn['id']}.md"), "change": "added"} for turn in turns]
        wait(self.app.run_job("index", changes=changes))

    def search(self, query, k, now):
        found = wait(self.app.run_job("search", query=query, limit=k))
        return [Path(one["path"]).stem for one in found.metadata["results"]]

    def close(self):
        wait(self.app.close())
