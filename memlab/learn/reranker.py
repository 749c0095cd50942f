"""Training of a cross-encoder on conversational memory: ``memlab train reranker out_model=DIR ...``.

    memlab train reranker data=locomo data.path=FILE out_model=DIR              learns from all questions
    memlab train reranker data=locomo data.path=FILE out_model=DIR fold=1/3     keeps fold 1 of 3 apart
    memlab train reranker ... out_model=DIR2 fold=2/3 device=cuda:1             beside it, on another GPU
    memlab train reranker out_model=DIR search/dense=none negatives=5 epochs=1  BM25's negatives alone
    memlab train reranker 'pairs={a.jsonl: 1, b.jsonl: 0.5}' out_model=DIR      learns from files of memlab train pairs

Every setting of ``TrainingRecipe`` is given as setting=value. All other words configure the data and the first stage,
as for memlab run. ``rank/rerank=cross_encoder cross_encoder.path=DIR`` reads the folder;
``rank/rerank=cross_fit 'rank.rerank.paths=[DIR1,DIR2,DIR3]'`` reads one folder for each fold. Give the same line again
to continue an interrupted training.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any

from memlab.learn.cross_fit_rerank import write
from memlab.learn.pairs import draw
from memlab.learn.recipe import TrainingRecipe, finished_record, record_of_run, run_in_words, train_command
from memlab.learn.sources import read_sources
from memlab.models.local.base import files_digest
from memlab.pipeline.stage import spec, spec_digest
from memlab.support.files import atomic_dir
from memlab.support.machine import enough_memory


def train(recipe: TrainingRecipe, words: list[str], watch: Callable[[int, float], None] | None = None
          ) -> dict[str, Any]:
    """Fine-tune as the recipe and the words say; return the record that is saved beside the weights.

    A finished model of the same recipe and examples returns at once. ``watch(step, loss)`` is called after each step.
    Raises MemlabError where there is no example, or where the folder holds another model.
    """
    kept, sources, _ = read_sources(recipe, words)
    known = sources[0]
    if recipe.pairs:  # questions of files count by their texts alone, wherever they are asked
        known = {"sources": sources, "fold": "all", "held_out": [],
                 "learnt": sorted({text for source in sources for text in source["learnt"]})}
    lists = draw(kept, recipe.negatives, recipe.epochs, recipe.batch, recipe.seed)
    settings = recipe.settings()
    base = files_digest(recipe.base_folder())
    mark = spec_digest({"recipe": settings, "base": base, "held_out": known["held_out"], "lists": lists})
    if finished := finished_record(recipe.out_model, mark):
        return finished
    from memlab.learn import training  # loads the training libraries

    start = time.perf_counter()
    model = training.load_reranker(recipe)
    checkpoints = recipe.out_model.with_name(f"{recipe.out_model.name}.unfinished")
    losses = training.train_reranker(model, lists, recipe, checkpoints, mark, watch)
    record = {
        "mark": mark, **known, "recipe": spec(settings), "base": base,
        "counts": {"examples": kept.height, "questions": kept["query"].n_unique(),
                   "passages": len({*kept["positive"], *kept["negatives"].explode()}),
                   "held_out": len(known["held_out"]), "steps": len(losses)},
        **record_of_run(start, losses),
    }
    with atomic_dir(recipe.out_model) as temporary:  # so that the folder is whole or absent
        model.save_pretrained(str(temporary), create_model_card=False)
        write(temporary, record)
    finished_record(recipe.out_model, mark)  # raises if another model took the folder meanwhile
    shutil.rmtree(checkpoints, ignore_errors=True)
    return record


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return train_command(TrainingRecipe, __doc__ or "", _run, argv)


def _run(recipe: TrainingRecipe, words: list[str]) -> str:
    """Fine-tune on the data that the words configure, and return a line about it."""
    with enough_memory(f"give each step fewer positives (batch={max(recipe.batch // 2, 1)}), or limit= in all"):
        record = train(recipe, words)
    return f"{recipe.out_model}: {run_in_words(record)}; {record['counts']['held_out']:,} questions held out"
