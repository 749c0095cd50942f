"""cognee without the chat-model step of its pipeline: a document for each turn, its chunks found by memlab's vectors"""

import os
from importlib.util import find_spec

from memlab_peer import wait

LICENCE = "Apache-2.0"
SENDS = "events to its maker, unless TELEMETRY_DISABLED is set"
VARIABLES = {
    "TELEMETRY_DISABLED": "1", "ENABLE_BACKEND_ACCESS_CONTROL": "false", "LLM_API_KEY": "none",
    "EMBEDDING_API_KEY": "none", "EMBEDDING_DIMENSIONS": "384",
    "EMBEDDING_MODEL": "openai/text-embedding-3-small"}  # a name whose tokenizer it has


class Adapter:
    def __init__(self, folder, url):
        tokenizers = f"{os.path.dirname(find_spec('litellm').origin)}/litellm_core_utils/tokenizers"
        os.environ |= {"EMBEDDING_ENDPOINT": url, "TIKTOKEN_CACHE_DIR": tokenizers}
        import cognee  # noqa: PLC0415  (it reads the variables)
        from cognee.api.v1.cognify.cognify import get_default_tasks  # noqa: PLC0415
        cognee.config.data_root_directory(f"{folder}/data")
        cognee.config.system_root_directory(f"{folder}/system")
        self.cognee, self.tasks = cognee, wait(get_default_tasks())

    def add(self, turns):
        wait(self.cognee.add([turn["text"] for turn in turns], dataset_name="turns"))

    def ready(self):
        documents, chunks, _, store = self.tasks
        wait(self.cognee.run_custom_pipeline(tasks=[documents, chunks, store], dataset="turns"))

    def search(self, query, k, now):
        found = wait(self.cognee.search(query, query_type=self.cognee.SearchType.CHUNKS, top_k=k))
        return [one["text"] for one in found]
