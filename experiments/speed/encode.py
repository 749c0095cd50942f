"""Speed of memlab's embedder against ``SentenceTransformer.encode`` with its defaults, same weights, same precision.

    python experiments/speed/encode.py --locomo FILE --longmemeval FILE

Prints for each text set the seconds of both (alternating, the best of several passes each) and their ratio, as wall
time and as processor time, which other processes on the machine disturb less. Also prints the lowest cosine between
the two sets of vectors, the padding share, and the share of the machine's measured matrix-product peak that the
model's linear layers reach.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from memlab.models.local.backend import CPU_BUDGET
from memlab.models.local.batching import pack, tokenise
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.onednn import PackedLinear, usable


def locomo_turns(file: Path) -> list[str]:
    """Return every turn as 'speaker: text [caption]'."""
    talks = [talk["conversation"] for talk in json.loads(file.read_text())]
    turns = [turn for talk in talks for value in talk.values() if isinstance(value, list) for turn in value]
    return [f"{t['speaker']}: {t['text']}" + (f" [{t['blip_caption']}]" if "blip_caption" in t else "") for t in turns]


def longmemeval_rounds(file: Path, count: int) -> list[str]:
    """Return a seeded sample of rounds; a round is a user turn with the reply to it."""
    data = file.read_bytes()
    records = json.loads(lzma.decompress(data) if file.suffix == ".xz" else data)
    rounds = {f"{a['content']}\n{b['content']}" for record in records for session in record["haystack_sessions"]
              for a, b in zip(session, session[1:], strict=False) if (a["role"], b["role"]) == ("user", "assistant")}
    return random.Random(0).sample(sorted(rounds), min(count, len(rounds)))


def measure_time(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall time of the work and its processor time over all threads, in seconds."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def peak(size: int = 2048) -> tuple[float, float]:
    """Return operations per second of the machine's fastest fp32 matrix product, by wall and by processor time."""
    a, layer = torch.randn(size, size), torch.nn.Linear(size, size)
    with torch.inference_mode():
        ways: list[Callable[[], Any]] = [lambda: layer(a)]
        if usable():
            packed = PackedLinear(layer)
            ways.append(lambda: packed(a))
        times = np.array([measure_time(way) for way in ways for _ in range(8)])
        clock, cpu = 2 * size**3 / times.min(axis=0)
        return float(clock), float(cpu)


def linear_work(model: SentenceTransformer) -> int:
    """Return floating-point operations per token in the encoder's linear layers (without attention products)."""
    return sum(2 * m.in_features * m.out_features for name, m in model.named_modules()
               if isinstance(m, torch.nn.Linear) and "pooler" not in name)


def compare(name: str, texts: list[str], turns: int, top: tuple[float, float]) -> None:
    embedder = SentenceEmbedder()
    reference = SentenceTransformer(str(embedder._folder()), device="cpu")
    ours = np.zeros((len(texts), embedder.dim()), np.float32)
    theirs = ours.copy()

    def encode_ours() -> None:
        for at, vectors in embedder.encode(texts, "document"):
            ours[at] = vectors

    def encode_theirs() -> None:
        theirs[:] = reference.encode(texts)

    times = np.array([[measure_time(encode_theirs), measure_time(encode_ours)] for _ in range(turns)]).min(axis=0)
    lengths = tokenise(reference.tokenizer, texts, reference.max_seq_length).lengths
    work = linear_work(reference) * int(lengths.sum())
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in pack(lengths, CPU_BUDGET))
    print(f"{name}: {len(texts)} texts, {int(lengths.sum())} tokens, "
          f"padding {1 - lengths.sum() / padded:.1%}, "
          f"lowest cosine {(ours * theirs).sum(1).min():.7f}")
    for kind, (slow, fast), limit in zip(["clock", "processor time"], times.T, top, strict=True):
        print(f"  {kind}: sentence-transformers {slow:.2f} s, memlab {fast:.2f} s, ratio {slow / fast:.2f}, "
              f"{work / fast / limit:.0%} of the peak of {limit / 1e9:.0f} GFLOP/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="locomo10.json")
    parser.add_argument("--longmemeval", type=Path, help="longmemeval_s_cleaned.json, or .xz")
    parser.add_argument("--rounds", type=int, default=500, help="number of rounds sampled from LongMemEval")
    parser.add_argument("--turns", type=int, default=3, help="number of times that each side encodes everything")
    args = parser.parse_args()
    top = peak()
    if args.locomo:
        compare("LoCoMo turns", locomo_turns(args.locomo), args.turns, top)
    if args.longmemeval:
        compare("LongMemEval rounds", longmemeval_rounds(args.longmemeval, args.rounds), args.turns, top)


if __name__ == "__main__":
    main()
