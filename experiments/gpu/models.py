"""Encoding and reranking at the size of bge-m3 and bge-reranker-v2-m3, by padded tokens per batch.

    python experiments/gpu/models.py [small]

Random weights. Printed per budget: texts or pairs a second, the share of the measured matrix-product rate, the memory
that tensors took beside the weights; at last what CUDA and its libraries took themselves.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from experiments.gpu import random_models, speed
from experiments.gpu.rows import rate
from memlab.models.local.backend import resolve

BUDGETS = (8_192, 65_536, 262_144)


def main() -> None:
    """Print a line for each kind of text and budget."""
    device = resolve("auto", "auto", "auto").devices[0]
    sizes = speed.SMALL if "small" in sys.argv[1:] else replace(
        speed.REAL, turns=(8_192, (5, 200)), sessions=(256, (500, 4_000)), pairs=8_192)
    peak = speed.device_rates(device, sizes).half
    turns, sessions = (speed.encoder_texts(sizes, whole) for whole in (False, True))
    questions, passages = speed.reranker_texts(sizes)
    with tempfile.TemporaryDirectory() as folder:
        encoder = random_models.save_encoder(Path(folder) / "encoder", sizes.shape, device)
        reranker = random_models.save_reranker(Path(folder) / "reranker", sizes.shape, device)
        for budget in BUDGETS:
            for name, work in (("turns", speed.encode(encoder, device, turns, budget)),
                               ("sessions", speed.encode(encoder, device, sessions, budget)),
                               ("pairs", speed.rerank(reranker, device, questions, passages, budget))):
                share = work.share(sizes.shape, peak)
                speeds = (rate(work.number / work.seconds, f"{name}/s"),
                          rate(work.tokens.sum() / work.seconds, "tokens/s"))
                print(f"{budget:>7} padded tokens  {speeds[0]:<18}  {speeds[1]:<18}  {share:4.0%}  "
                      f"{work.working_gb:5.2f} GB", flush=True)
    if device != "cpu":
        free, total = torch.cuda.mem_get_info(device)
        print(f"CUDA and its libraries: {(total - free - torch.cuda.memory_reserved(device)) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
