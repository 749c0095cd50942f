"""Encoding and reranking at the size of bge-m3 and bge-reranker-v2-m3, by padded tokens per batch.

    python experiments/gpu/models.py [small]

Random weights. Printed per budget: texts or pairs a second, the share of the measured matrix-product rate, the most
memory that tensors took.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from memlab.doctor import random_models, speed
from memlab.doctor.rows import rate
from memlab.models.local.backend import resolve

BUDGETS = (8_192, 32_768, 65_536, 131_072, 262_144)


def main() -> None:
    """Print a line for each kind of text and budget."""
    device = resolve("auto", "auto", "auto").devices[0]
    sizes = speed.SMALL if "small" in sys.argv[1:] else speed.REAL
    peak = speed.device_rates(device, sizes).flops
    turns, sessions = (speed.encoder_texts(sizes, whole) for whole in (False, True))
    questions, passages = speed.reranker_texts(sizes)
    with tempfile.TemporaryDirectory() as folder:
        encoder = random_models.save_encoder(Path(folder) / "encoder", sizes.shape, device)
        reranker = random_models.save_reranker(Path(folder) / "reranker", sizes.shape, device)
        for budget in BUDGETS:
            for name, work in (("turns", speed.encode(encoder, device, turns, budget)),
                               ("sessions", speed.encode(encoder, device, sessions, budget)),
                               ("pairs", speed.rerank(reranker, device, questions, passages, budget))):
                share = sizes.shape.flops(work.tokens) / work.seconds / peak
                print(f"{budget:>7} padded tokens  {name:<8}  {rate(work.number / work.seconds, name + '/s'):<20}  "
                      f"{rate(work.tokens.sum() / work.seconds, 'tokens/s'):<20}  {share:4.0%}  {work.peak_gb:5.1f} GB",
                      flush=True)


if __name__ == "__main__":
    main()
