"""Fine-tune a cross-encoder on conversational memory: ``python -m memlab.learn.reranker out_model=DIR ...``.

    python -m memlab.learn.reranker data=locomo data.path=FILE out_model=DIR              learns from all questions
    python -m memlab.learn.reranker data=locomo data.path=FILE out_model=DIR fold=1/3     keeps fold 1 of 3 apart
    python -m memlab.learn.reranker ... out_model=DIR2 fold=2/3 device=cuda:1             beside it, on another GPU
    python -m memlab.learn.reranker out_model=DIR search/dense=none negatives=5 epochs=1  BM25's negatives alone

Every setting of ``TrainConfig`` is given as setting=value. All other words configure the data and the first stage, as
for memlab.run. ``rank/rerank=cross_encoder cross_encoder.path=DIR`` reads the folder;
``rank/rerank=cross_fit 'rank.rerank.paths=[DIR1,DIR2,DIR3]'`` reads one folder for each fold. Give the same line again
to continue an interrupted training.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from pydantic import ValidationError

from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.harness import manifest
from memlab.harness.arm import load
from memlab.learn.command import read_arm, report
from memlab.learn.cross_fit_rerank import FILE, TrainConfig, write
from memlab.learn.pairs import NEEDED, draw, draw_examples, examples, split
from memlab.models.local.base import files_digest
from memlab.pipeline import Pipeline
from memlab.runtime.files import atomic_dir
from memlab.runtime.machine import enough_memory
from memlab.runtime.terminal import print
from memlab.stage import spec, spec_digest
from memlab.store import Store
from memlab.tables import Tables

FIRST_STAGE = "score"
"""The last slot of the first stage, whose ranking gives the negatives."""


def train(tables: Tables, dataset: dict[str, Any], pipeline: Pipeline, config: TrainConfig, store: Store,
          watch: Callable[[int, float], None] | None = None) -> dict[str, Any]:
    """Fine-tune on the questions of a loaded data set; return the record that is saved beside the weights.

    ``dataset`` is the identity of the data, for the record. The pipeline's first stage gives the negatives; its later
    slots do not run. A finished model of the same configuration and examples returns at once. ``watch(step, loss)`` is
    called after each step. Raises MemlabError where there is no example, or where the folder holds another model.
    """
    ranked = pipeline.run(tables, store, until=FIRST_STAGE).only(NEEDED)
    fold = split(ranked, config.fold)
    kept = draw_examples(examples(ranked, fold, config.depth, config.roles), config.limit, config.seed)
    if not kept.height:
        raise MemlabError("no question has an evidence turn and another turn to tell it from",
                          where="learn/reranker", fix="data with turn-level evidence, or a larger depth")
    lists = draw(kept, config.negatives, config.epochs, config.batch, config.seed)
    settings = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)
                if f.name not in ("out_model", "base", "checkpoint_seconds", "device")}
    base, held_out = files_digest(config.base_folder()), fold.held_out["key"].to_list()
    mark = spec_digest({"recipe": settings, "base": base, "held_out": held_out, "lists": lists})
    if finished := _existing_record(config.out_model, mark):
        return finished
    from memlab.learn import training  # loads the training libraries

    start = time.perf_counter()
    model = training.load_model(config)
    checkpoints = config.out_model.with_name(f"{config.out_model.name}.unfinished")
    losses = training.train(model, lists, config, checkpoints, mark, watch)
    record = {
        "mark": mark, "data": dataset, "fold": config.fold, "held_out": held_out,
        "learnt": sorted(set(fold.train["text_id"])), "recipe": spec(settings), "base": base,
        "first_stage": {slot: spec(stage) for slot, stage in pipeline.between(None, FIRST_STAGE)},
        "counts": {"questions": fold.train.height, "held_out": fold.held_out.height,
                   "questions_learnt": kept["query"].n_unique(), "examples": kept.height,
                   "passages": len({*kept["positive"], *kept["negatives"].explode()}),
                   "forbidden_sessions": fold.forbidden.height, "steps": len(losses)},
        "losses": tenths(losses), "seconds": round(time.perf_counter() - start, 1),
        "hardware": manifest.hardware(), "versions": manifest.versions(), **manifest.commit(),
    }
    with atomic_dir(config.out_model) as temporary:  # so that the folder is whole or absent
        model.save_pretrained(str(temporary), create_model_card=False)
        write(temporary, record)
    _existing_record(config.out_model, mark)  # raises if another model took the folder meanwhile
    shutil.rmtree(checkpoints, ignore_errors=True)
    return record


def tenths(losses: Sequence[float]) -> list[float]:
    """Return the mean loss of each tenth of the steps.

    >>> tenths([4.0, 2.0])
    [4.0, 2.0]
    """
    parts = np.array_split(np.array(losses), min(10, len(losses)))
    return [round(float(p.mean()), 4) for p in parts]


def _existing_record(folder: Path, mark: str) -> dict[str, Any] | None:
    """Return the record of the model with this mark; raise MemlabError if the folder holds something else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        record: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    if record.get("mark") != mark:
        raise MemlabError("holds something else, or a model of other data or another configuration",
                          where=f"out_model={folder}", fix="give another folder, or delete this one")
    return record


def split_words(words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Split a command line into the settings of ``TrainConfig`` and the words that memlab.run would read.

    >>> split_words(["data=locomo", "fold=1/3", "rate=5e-5"])
    ({'fold': '1/3', 'rate': 5e-05}, ['data=locomo'])
    """
    from memlab.config.overrides import faults

    names = [f.name for f in dataclasses.fields(TrainConfig) if f.name != "seed"]  # the seed is memlab.run's
    settings: dict[str, Any] = {}
    others, wrong = [], []
    for word in words:
        key = word.partition("=")[0]
        if key in names:
            try:
                settings[key] = OverridesParser.create().parse_override(word).value()
            except HydraException:
                wrong.append(f"{word}: cannot be read as key=value")
        elif any("there is no setting" in str(fault) for fault in faults([word])):
            wrong.append(f"{word}: there is no setting '{key}'; {did_you_mean(key, [*names, 'seed', 'data', 'store'])}")
        else:
            others.append(word)
    if wrong:
        raise Faults(wrong)
    return settings, others


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or {"-h", "--help"} & set(words):
        print(__doc__, TrainConfig.__doc__, sep="\n")
        return 0
    try:
        return report(lambda: _run(words))
    except KeyboardInterrupt:
        print("\ninterrupted; give the same line again to continue from the last checkpoint", file=sys.stderr)
        return 130


def _run(words: Sequence[str]) -> str:
    """Fine-tune as the words say, and return a line about it."""
    settings, others = split_words(words)
    try:
        TrainConfig(**settings)  # raises its faults before the data are looked for
    except ValidationError as error:
        raise Faults(f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}"
                     for e in error.errors()) from error
    arm, store = read_arm(others)
    config = TrainConfig(**settings, seed=arm.seed)
    with enough_memory(f"give each step fewer positives (batch={max(config.batch // 2, 1)}), or limit= in all"):
        record = train(load(arm.dataset), {"name": arm.dataset.name, **arm.dataset.identity()}, arm.pipeline, config,
                       store)
    counts, losses = record["counts"], record["losses"]
    return (f"{config.out_model}: {counts['examples']:,} evidence turns of {counts['questions_learnt']:,} questions, "
            f"{counts['steps']:,} steps, {record['seconds']:,.0f} s, loss {losses[0]:.3f} -> {losses[-1]:.3f}; "
            f"{counts['held_out']:,} questions held out")


if __name__ == "__main__":
    sys.exit(main())
