"""Fine-tune a cross-encoder on conversational memory: ``memlab train reranker out_model=DIR ...``.

    memlab train reranker data=locomo data.path=FILE out_model=DIR              learns from all questions
    memlab train reranker data=locomo data.path=FILE out_model=DIR fold=1/3     keeps fold 1 of 3 apart
    memlab train reranker ... out_model=DIR2 fold=2/3 device=cuda:1             beside it, on another GPU
    memlab train reranker out_model=DIR search/dense=none negatives=5 epochs=1  BM25's negatives alone

Every setting of ``TrainingRecipe`` is given as setting=value. All other words configure the data and the first stage,
as for memlab run. ``rank/rerank=cross_encoder cross_encoder.path=DIR`` reads the folder;
``rank/rerank=cross_fit 'rank.rerank.paths=[DIR1,DIR2,DIR3]'`` reads one folder for each fold. Give the same line again
to continue an interrupted training.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from memlab.harness.arm import load
from memlab.learn.command import read_arm
from memlab.learn.cross_fit_rerank import write
from memlab.learn.pairs import draw
from memlab.learn.recipe import TrainingRecipe, finished_record, record_of_run, train_command
from memlab.learn.sources import make_examples, source_record
from memlab.models.local.base import files_digest
from memlab.pipeline import Pipeline
from memlab.runtime.files import atomic_dir
from memlab.runtime.machine import enough_memory
from memlab.stage import spec, spec_digest
from memlab.store import Store
from memlab.tables import Tables


def train(tables: Tables, dataset: dict[str, Any], pipeline: Pipeline, config: TrainingRecipe, store: Store,
          watch: Callable[[int, float], None] | None = None) -> dict[str, Any]:
    """Fine-tune on the questions of a loaded data set; return the record that is saved beside the weights.

    ``dataset`` is the identity of the data, for the record. The pipeline's first stage gives the negatives; its later
    slots do not run. A finished model of the same configuration and examples returns at once. ``watch(step, loss)`` is
    called after each step. Raises MemlabError where there is no example, or where the folder holds another model.
    """
    kept, fold = make_examples(tables, pipeline, config, store)
    lists = draw(kept, config.negatives, config.epochs, config.batch, config.seed)
    settings = config.settings()
    base, held_out = files_digest(config.base_folder()), fold.held_out["key"].to_list()
    mark = spec_digest({"recipe": settings, "base": base, "held_out": held_out, "lists": lists})
    if finished := finished_record(config.out_model, mark):
        return finished
    from memlab.learn import training  # loads the training libraries

    start = time.perf_counter()
    model = training.load_reranker(config)
    checkpoints = config.out_model.with_name(f"{config.out_model.name}.unfinished")
    losses = training.train_reranker(model, lists, config, checkpoints, mark, watch)
    record = {
        "mark": mark, **source_record(dataset, pipeline, config, fold), "recipe": spec(settings), "base": base,
        "counts": {"questions": fold.train.height, "held_out": fold.held_out.height,
                   "questions_learnt": kept["query"].n_unique(), "examples": kept.height,
                   "passages": len({*kept["positive"], *kept["negatives"].explode()}),
                   "forbidden_sessions": fold.forbidden.height, "steps": len(losses)},
        **record_of_run(start, losses),
    }
    with atomic_dir(config.out_model) as temporary:  # so that the folder is whole or absent
        model.save_pretrained(str(temporary), create_model_card=False)
        write(temporary, record)
    finished_record(config.out_model, mark)  # raises if another model took the folder meanwhile
    shutil.rmtree(checkpoints, ignore_errors=True)
    return record


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return train_command(TrainingRecipe, __doc__ or "", _run, argv)


def _run(config: TrainingRecipe, words: list[str]) -> str:
    """Fine-tune on the data that the words configure, and return a line about it."""
    arm, store = read_arm(words)
    with enough_memory(f"give each step fewer positives (batch={max(config.batch // 2, 1)}), or limit= in all"):
        record = train(load(arm.dataset), {"name": arm.dataset.name, **arm.dataset.identity()}, arm.pipeline, config,
                       store)
    counts, losses = record["counts"], record["losses"]
    return (f"{config.out_model}: {counts['examples']:,} evidence turns of {counts['questions_learnt']:,} questions, "
            f"{counts['steps']:,} steps, {record['seconds']:,.0f} s, loss {losses[0]:.3f} -> {losses[-1]:.3f}; "
            f"{counts['held_out']:,} questions held out")


if __name__ == "__main__":
    sys.exit(main())
