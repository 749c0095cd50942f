"""A tokenizer small enough to be made in a test, whose counts do not add up where texts are joined."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer, models

from memlab.models.chat.openai import OpenAIChat
from memlab.stages.read.tokens import ReaderTokens

MERGES = [("\n", "u"), ("u", "s"), ("us", "e"), ("use", "r"), ("w", "o"), ("wo", "r"), ("wor", "d"), ("\n", "\n"),
          (" ", "[")]
"""In this order: ``user`` is one token, but four behind the end of a line, which takes its first letter."""


def tokenizer(folder: Path) -> Path:
    """Write the files of a byte pair encoding of letters and ``MERGES``; return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = ["?", "\n", *map(chr, range(32, 127)), *("".join(pair) for pair in MERGES)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    Tokenizer(models.BPE(vocabulary, MERGES, unk_token="?")).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return folder


def reader(folder: Path) -> ReaderTokens:
    """The counter of a reader with that tokenizer."""
    return ReaderTokens(chat=OpenAIChat(model="tiny", tokenizer=tokenizer(folder)))


@cache
def _loaded(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))


def own_count(folder: Path, text: str) -> int:
    """What the tokenizer itself says."""
    return len(_loaded(folder / "tokenizer.json").encode(text).ids)
