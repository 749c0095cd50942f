"""LlamaIndex's vector index over a node for each turn, with memlab's vectors"""

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.embeddings.openai_like import OpenAILikeEmbedding

LICENCE = "MIT"
SENDS = "nothing"


class Adapter:
    def __init__(self, folder, url):
        self.folder, self.nodes = folder, []
        self.encoder = OpenAILikeEmbedding(model_name="document", api_base=url, api_key="none")

    def add(self, turns):
        self.nodes += [TextNode(id_=turn["id"], text=turn["text"]) for turn in turns]

    def ready(self):
        self.index = VectorStoreIndex(self.nodes, embed_model=self.encoder)
        self.index.storage_context.persist(self.folder)

    def search(self, query, k, now):
        return [found.node.node_id for found in self.index.as_retriever(similarity_top_k=k).retrieve(query)]
