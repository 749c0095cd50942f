"""Tiny models with random weights, saved to disk: FlagEmbedding's code runs on them as on the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

WORDS = ("where did anna move last spring she moved to lisbon and bob stayed in oslo with his old dog because work "
         "was good there A B Yes No Given a query and a passage determine whether the contains an answer to by "
         "providing prediction of either or : , . '")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def save_tokenizer(folder: Path) -> Any:
    """Train a tokenizer of XLM-R's shape (unigram pieces, <s> a </s></s> b </s>) that decodes to what it read."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>",
               "cls_token": "<s>", "sep_token": "</s>"}
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
                                      unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator([WORDS] * 20 + ["abcdefghijklmnopqrstuvwxyz?\n"] * 5, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>"))])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **special)
    fast.save_pretrained(folder)
    return fast


def _settings(tokenizer: Any) -> dict[str, Any]:
    return {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, **SIZES}


def save_classifier(folder: Path) -> None:
    """Save an XLM-R that scores pairs."""
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    torch.manual_seed(0)
    config = XLMRobertaConfig(**_settings(save_tokenizer(folder)), max_position_embeddings=140, type_vocab_size=1,
                              num_labels=1, initializer_range=0.5)
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)


def save_m3(folder: Path) -> None:
    """Save an XLM-R encoder with the two heads of bge-m3."""
    from transformers import XLMRobertaConfig, XLMRobertaModel

    torch.manual_seed(1)
    config = XLMRobertaConfig(**_settings(save_tokenizer(folder)), max_position_embeddings=140, type_vocab_size=1,
                              initializer_range=0.5)
    XLMRobertaModel(config).save_pretrained(folder)
    torch.save(torch.nn.Linear(32, 32).state_dict(), folder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(32, 1).state_dict(), folder / "sparse_linear.pt")


def save_language_model(folder: Path) -> None:
    """Save a Llama that can be asked for Yes or No."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(2)
    config = LlamaConfig(**_settings(save_tokenizer(folder)), max_position_embeddings=512, initializer_range=0.3)
    LlamaForCausalLM(config).save_pretrained(folder)
