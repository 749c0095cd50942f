"""Conversion of a GGUF file into a model folder: ``python convert_gguf.py FILE FOLDER``.

Runs with the serving environment's Python, which has transformers, gguf and accelerate but no memlab. vLLM's own reader
of GGUF loads this model and crashes at the first request.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def convert(file: Path, folder: Path) -> None:
    """Write the model of ``file`` and its tokenizer to ``folder`` in float32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    print("reading the tokenizer", flush=True)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    print("reading the weights", flush=True)
    # without dequantize=True the weights stay packed, and saving fails
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32,
                                                 quantization_config=GgufConfig(dequantize=True))
    print("writing the model", flush=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"  # the file holds everything
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
