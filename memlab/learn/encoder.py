"""Training of an encoder for late interaction on conversational memory: ``memlab train encoder out_model=DIR ...``.

    memlab train encoder data=beam out_model=DIR                         learns from all questions of a data set
    memlab train encoder data=locomo data.path=FILE out_model=DIR fold=1/3   keeps fold 1 of 3 apart
    memlab train encoder 'pairs={a.jsonl: 1, b.jsonl: 4}' out_model=DIR  learns from files of ``memlab train pairs``
    memlab train encoder ... dimensions=128                              token vectors of 128 numbers

Every setting of ``EncoderRecipe`` is given as setting=value. All other words configure the data and the first stage,
whose ranking gives the hard negatives, as for memlab run. DIR holds the update of low rank
(``embedder.adapter=DIR/update.safetensors``) and, without ``dimensions``, the whole model (``embedder=minilm
embedder.path=DIR``). Give the same line again to continue an interrupted training.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any

from memlab.learn.cross_fit_rerank import FILE
from memlab.learn.held_out import best_with, compare_pipelines, in_words
from memlab.learn.pairs import distinct_batches, draw
from memlab.learn.recipe import EncoderRecipe, finished_record, record_of_run, run_in_words, sources_of, train_command
from memlab.learn.sources import drop_learned, read_sources
from memlab.models.local.adapter import UPDATE, update_file, write_update
from memlab.models.local.base import files_digest
from memlab.pipeline.stage import spec, spec_digest
from memlab.support.files import atomic_dir, write_json
from memlab.support.machine import enough_memory

FORMAT = "memlab-encoder-1"


def train(recipe: EncoderRecipe, words: list[str], watch: Callable[[int, float], None] | None = None
          ) -> dict[str, Any]:
    """Train as the recipe and the words say; return the record that is saved beside the weights.

    A finished model of the same recipe and examples returns at once. ``watch(step, loss)`` is called after each step.
    Raises MemlabError where there is no example, or where the folder holds another model.
    """
    from memlab.learn import encoder_training  # loads the training libraries

    encoder_training.check(recipe)
    kept, sources, others = read_sources(recipe, words)
    drawn = draw(kept, recipe.negatives, recipe.epochs, recipe.batch, recipe.seed)
    lists = distinct_batches(drawn, recipe.batch)
    settings, base = recipe.settings(), files_digest(recipe.base_folder())
    started_from = recipe.embedder()
    adapter = started_from.identity().get("adapter")
    earlier = [] if recipe.adapter is None else sources_of(update_file(recipe.adapter))
    mark = spec_digest({"recipe": settings, "base": base, "adapter": adapter, "lists": lists})
    if finished := finished_record(recipe.out_model, mark):
        return finished
    start = time.perf_counter()
    passages = sorted({*kept["positive"], *kept["negatives"].explode()})
    parts = encoder_training.load(recipe, passages)
    checkpoints = recipe.out_model.with_name(f"{recipe.out_model.name}.unfinished")
    losses = encoder_training.train_encoder(parts, lists, recipe, checkpoints, mark, watch)
    file = checkpoints / UPDATE
    digest = write_update(file, encoder_training.update_of(parts, recipe.rank),
                          {"base": base, "rank": recipe.rank, "dimensions": recipe.dimensions})
    found = None
    if others is not None and (len(others.questions) or recipe.questions == "rules"):
        others = drop_learned(others, started_from.learned_questions())
        found = compare_pipelines(others.tables, others.questions, others.by, best_with(started_from),
                                  best_with(dataclasses.replace(started_from, adapter=file)), others.store, recipe.seed)
    record = {
        "format": FORMAT, "mark": mark, "sources": [*sources, *earlier], "recipe": spec(settings), "base": base,
        "adapter": adapter, "update": digest,
        "counts": {"examples": kept.height, "questions": kept["query"].n_unique(), "passages": len(passages),
                   "left_out": len(drawn.queries) - len(lists.queries), "steps": len(losses)},
        "not_learned": found, **record_of_run(start, losses),
    }
    with atomic_dir(recipe.out_model) as temporary:  # so that the folder is whole or absent
        shutil.copy(file, temporary / UPDATE)
        if recipe.dimensions is None:  # a folder of the model alone would lose the map
            encoder_training.save(parts, recipe.base_folder(), temporary)
        write_json(temporary / FILE, record)
    finished_record(recipe.out_model, mark)  # raises if another model took the folder meanwhile
    shutil.rmtree(checkpoints, ignore_errors=True)
    return record


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return train_command(EncoderRecipe, __doc__ or "", _run, argv)


def _run(recipe: EncoderRecipe, words: list[str]) -> str:
    """Train, and return a line about it."""
    with enough_memory(f"a smaller batch (batch={max(recipe.batch // 2, 2)}), or limit= in all"):
        record = train(recipe, words)
    found = record["not_learned"]
    worth = f"\n{in_words(found)}" if found else ""
    return f"{recipe.out_model}: {run_in_words(record)}{worth}"
