"""Training of encoders on a card: the three trainings of the shipped update, and a base of bge-m3's size.

    python experiments/gpu/train.py PAIRS OUT [small]

PAIRS is a folder with friends.jsonl, tales.jsonl and statements.jsonl, as ``experiments/encoder_training/make.sh``
makes them; OUT gets the trained updates. The large base has random weights, so only its time and memory mean something.
Printed per training: examples a second, loss, and the memory that tensors took at most, weights included.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from experiments.gpu import random_models
from memlab.learn import encoder, encoder_training
from memlab.learn.pairs import distinct_batches, draw
from memlab.learn.recipe import EncoderRecipe, run_in_words
from memlab.learn.sources import read_sources
from memlab.models.local.backend import resolve

NAMES = ("friends", "tales", "statements")


def main() -> None:
    """Print a line for each training."""
    pairs, out = Path(sys.argv[1]), Path(sys.argv[2])
    device, small = resolve("auto", "auto", "auto").devices[0], "small" in sys.argv[3:]
    precisions = ("fp32",) if device == "cpu" else ("fp32", "bf16")
    for precision in precisions:
        for name in NAMES:
            recipe = EncoderRecipe(pairs={pairs / f"{name}.jsonl": 0.02 if small else 1}, epochs=1, precision=precision,
                                   out_model=out / precision / name)
            record, peak = with_peak(lambda recipe=recipe: encoder.train(recipe, []), device)
            print(f"{precision} {name}: {run_in_words(record)}, {peak:.2f} GB at most", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        base = random_models.save_encoder(
            Path(folder) / "base", random_models.TINY if small else random_models.LARGE, device)
        large = EncoderRecipe(base=str(base), pairs={pairs / "friends.jsonl": 0.05 if small else 0.75}, epochs=1,
                              precision=precisions[-1], out_model=Path(folder) / "large")
        for batch, cached in ((32, False), (128, False), (128, True), (512, True)):
            steps(replace(large, batch=batch, cached=cached), device)


def steps(recipe: EncoderRecipe, device: str) -> None:
    """Print the time and memory of a training without what comes before and after its steps."""
    kept, _, _ = read_sources(recipe, [])
    lists = distinct_batches(draw(kept, recipe.negatives, 1, recipe.batch, recipe.seed), recipe.batch)
    parts = encoder_training.load(recipe, sorted({*kept["positive"], *kept["negatives"].explode()}))
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        losses, peak = with_peak(lambda: encoder_training.train_encoder(
            parts, lists, recipe, Path(folder), "", lambda *_: times.append(time.perf_counter())), device)
    speed = recipe.batch * (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else float("nan")
    print(f"{recipe.precision} large base, batch {recipe.batch}, {'cached' if recipe.cached else 'whole'} gradients: "
          f"{speed:.0f} examples/s, {len(losses)} steps, loss {losses[0]:.2f} -> "
          f"{losses[-1]:.2f}, {peak:.2f} GB at most", flush=True)


def with_peak(work: Callable[[], Any], device: str) -> tuple[Any, float]:
    """Return what a function returns, and the gigabytes that tensors on the card took at most."""
    if device == "cpu":
        return work(), float("nan")
    torch.cuda.init()
    torch.cuda.reset_peak_memory_stats(device)
    return work(), torch.cuda.max_memory_allocated(device) / 1e9


if __name__ == "__main__":
    main()
