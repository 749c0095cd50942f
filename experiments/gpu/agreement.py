"""Agreement of a device with the CPU: vectors, batches, matches, exact search, inverted lists, order of a reranking."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import choose_products
from memlab.models.protocols import Floats, Ints
from memlab.stages.search import faiss_gpu
from memlab.stages.search.exact import Exact, ExactOnDevice, Neighbours
from memlab.stages.search.faiss_index import IVF
from memlab.stages.search.maxsim import best_matches
from memlab.stages.search.token_pools import PlacedTokens, place

from . import random_models
from .rows import Row, agreement_row
from .speed import random_token_vectors, unit

COSINE = {"fp32": 0.99999, "fp16": 0.999, "bf16": 0.99}
"""Least cosine between the vectors of a text in fp32 on the CPU and in a number format on the device."""

NUMBERS = {"fp32": 1e-5, "fp16": 3e-3, "bf16": 3e-2}
"""Most by which a number of a unit vector, or a product of two, may move."""

FP32 = "embedder.dtype=fp32 cross_encoder.dtype=fp32, and report it with the output of `memlab doctor`"

NO_FAISS = "FAISS cannot be imported"
GPU_FAISS = ("pip uninstall -y faiss-cpu faiss-gpu faiss-gpu-cu12 && "
             "pip install -c constraints-gpu.txt -e '.[gpu]'   (in memlab's folder)")


def vectors(folder: Path | None, device: str, texts: list[str]) -> Row:
    """Compare vectors with those of the CPU in fp32, text by text; no folder is the embedded encoder."""
    name = "embedded encoder" if folder is None else "random encoder"
    here, there = (_embedder(folder, one) for one in (device, "cpu"))
    cosine = (_vectors(here, texts) * _vectors(there, texts)).sum(axis=1)
    kind = here.identity()["dtype"]
    return agreement_row(f"vectors, {name}", f"least cosine {cosine.min():.6f} over {len(texts)} texts ({kind})",
                  bool(cosine.min() >= COSINE[kind]), FP32, least_cosine=float(cosine.min()))


def batches(device: str, texts: list[str]) -> Row:
    """Compare vectors of the same texts in small and large batches, and in the opposite order."""
    usual = _vectors(_embedder(None, device), texts)
    kind = _embedder(None, device).identity()["dtype"]
    moved = []
    for budget in (256, 4096, 131_072):
        other = _vectors(_embedder(None, device, budget), texts[::-1])[::-1]
        moved.append(np.abs(usual - other).max())
    most = float(np.max(moved))  # a number that is none stays one, where Python's max would pass over it
    return agreement_row("batches of any size and order", f"numbers move by {most:.1e} at most ({kind})",
                  most <= NUMBERS[kind], FP32, largest_difference=most)


def matches(device: str, width: int, tokens: int) -> Row:
    """Compare MaxSim over stored token vectors with fp64 on the CPU."""
    stored, query = random_token_vectors(7, tokens, width, device), unit(7, 20, width, device)
    products = choose_products(device != "cpu", "fp16" if device != "cpu" else "fp32")
    got = best_matches(query, place(stored, device, products))
    wide = stored.blocks[0].vectors.astype(np.float64) @ query.T.astype(np.float64)
    want = np.maximum.reduceat(wide, stored.begins, axis=0)
    streamed = best_matches(query, PlacedTokens(stored, device, products))  # piece by piece, as where memory is short
    most = float(np.max([np.abs(got - want), np.abs(streamed - want)]))
    return agreement_row("late interaction (MaxSim)", f"products move by {most:.1e} at most ({products})",
                  most <= NUMBERS[products], FP32, largest_difference=most)


def exact(device: str, width: int, number: int) -> Row:
    """Compare the best of an exact search, each question with a last day of its own, with numpy's."""
    stored, queries = unit(8, number, width, device), unit(9, 64, width, device)
    visible: Ints = np.random.default_rng(8).integers(1, number + 1, len(queries))
    depth, wrong = 100, 0
    there = Exact(stored).search(queries, visible, depth)
    for resident in (True, False):
        here = ExactOnDevice(stored, 1 << 14, device, resident).search(queries, visible, depth)
        wrong += sum(not np.allclose(_highest(a, depth), _highest(b, depth), atol=1e-6) or bool((a[0] >= limit).any())
                     for a, b, limit in zip(here, there, visible))
    return agreement_row("exact search with dates", f"{2 * len(queries) - wrong} of {2 * len(queries)} searches alike, "
                         "vectors held or sent", wrong == 0, "search.dense.index.device=cpu, and report it",
                         searches_off=wrong)


def inverted_lists(device: str, width: int, number: int) -> Row:
    """Compare the recall of FAISS's inverted lists on the card and on the CPU."""
    name = "inverted lists (FAISS)"
    faiss = _faiss()
    if faiss is None or (device != "cpu" and not faiss_gpu.count_gpus(faiss)):
        reason = NO_FAISS if faiss is None else f"faiss {faiss.__version__} sees no GPU"
        return Row("agreement", name, reason, "skipped", advice=GPU_FAISS)
    if device != "cpu" and (problem := faiss_gpu.failure()):
        return Row("agreement", name, f"faiss {faiss.__version__}: {problem}", "off", advice=GPU_FAISS)
    centre = np.random.default_rng(10).integers(0, 64, number)
    stored = unit(10, number, width, device) + 2 * unit(11, 64, width, device)[centre]
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    queries = stored[:64]
    everything = np.full(len(queries), number)
    best, recalls = Exact(stored).search(queries, everything, 10), dict[str, float]()
    for one in dict.fromkeys([device, "cpu"]):
        index = IVF(exact_below=0, nlist=number // 100, nprobe=8, device="cpu" if one == "cpu" else "auto")
        found = index.open(stored, None).search(queries, everything, 10)
        recalls[one] = recall(found, best)
    return agreement_row(name, f"recall@10 {recalls[device]:.3f} (CPU {recalls['cpu']:.3f})",
                  recalls[device] >= recalls["cpu"] - 0.03, "search.dense.index.device=cpu, and report it",
                  recall=recalls[device], recall_on_cpu=recalls["cpu"])


def rerank_order(folder: Path, device: str) -> Row:
    """Compare scores of pairs with those of the CPU in fp32, question by question."""
    from scipy.stats import spearmanr

    questions, turns = random_models.texts(4, (8, 16), seed=10), random_models.texts(32, (5, 60), seed=11)
    pairs = np.stack(np.divmod(np.arange(len(questions) * len(turns)), len(turns)), axis=1)
    here, there = (_scores(folder, one, questions, turns, pairs).reshape(len(questions), -1) for one in (device, "cpu"))
    worst = float(np.min([spearmanr(a, b).statistic for a, b in zip(here, there)]))
    first = float(np.mean(here.argmax(axis=1) == there.argmax(axis=1)))
    return agreement_row("order of a reranking", f"rank correlation {worst:.4f} at least, the first of "
                  f"{first:.0%} alike", worst >= 0.99, FP32, least_rank_correlation=worst, same_first=first)


def late_index(device: str, lives: int) -> Row:
    """Compare the first ten of each question in the lanes of a late index, from texts to hits, on embedded data."""
    from memlab.data.synthetic.dataset import Synthetic
    from memlab.experiment.harness.sweep import preset
    from memlab.store import Store

    if _faiss() is None:
        return Row("agreement", "late index, texts to hits", NO_FAISS, "skipped", advice=GPU_FAISS)
    tables, first = Synthetic(lives=lives, questions=8).load(), {}
    for one in dict.fromkeys([device, "cpu"]):
        pipeline = preset("search/late=index", "search.late.exact_below=0", "search.late.exact_queries=0",
                          "search.late.candidates=100", f"embedder.device={one}")
        with tempfile.TemporaryDirectory() as folder:
            hits = pipeline.run(tables, Store(Path(folder)))["hits"]
        best = hits.filter(pl.col("lane").str.starts_with("late"), pl.col("rank") <= 10)
        first[one] = best.select("query", "lane", "memory")
    here, there = first[device], first["cpu"]
    alike = here.join(there, on=here.columns, how="semi").height / max(1, there.height)
    return agreement_row("late index, texts to hits", f"{alike:.1%} of the first ten alike", alike >= 0.97, FP32,
                  share_alike=alike)


def _faiss() -> Any:
    """Return the package, or None where it cannot be imported."""
    try:
        return importlib.import_module("faiss")
    except ImportError:
        return None


def _embedder(folder: Path | None, device: str, budget: int | None = None) -> SentenceEmbedder:
    if folder is None:
        return SentenceEmbedder(device=device, token_budget=budget)
    return SentenceEmbedder(path=str(folder), name="random weights", device=device, token_budget=budget)


def _vectors(model: SentenceEmbedder, texts: list[str]) -> Floats:
    out = np.empty((len(texts), model.dim()), np.float32)
    for at, part in model.encode(texts, "document"):
        out[at] = part
    return out


def _scores(folder: Path, device: str, questions: list[str], turns: list[str], pairs: Ints) -> Floats:
    model = CrossEncoderScorer(path=str(folder), name="random weights", device=device)
    out = np.empty(len(pairs), np.float32)
    for at, part in model.score(questions, turns, pairs):
        out[at] = part
    return out


def _highest(found: tuple[Ints, Any], depth: int) -> Floats:
    return np.sort(found[1])[::-1][:depth].astype(np.float32)


def recall(found: Neighbours, best: Neighbours, k: int = 10) -> float:
    """Return the mean share of the k best vectors that were found among the first k."""
    return float(np.mean([len(_first(want, k) & _first(got, k)) / k for got, want in zip(found, best)]))


def _first(found: tuple[Ints, Any], k: int) -> set[int]:
    at, scores = found
    return {int(one) for one in at[np.argsort(-scores, kind="stable")][:k]}
