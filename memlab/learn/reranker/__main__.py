"""Fine-tune a cross-encoder on conversational memory: ``python -m memlab.learn.reranker out_model=DIR ...``.

    python -m memlab.learn.reranker data=locomo data.path=FILE out_model=DIR              learns from all questions
    python -m memlab.learn.reranker data=locomo data.path=FILE out_model=DIR fold=1/3     keeps fold 1 of 3 apart
    python -m memlab.learn.reranker out_model=DIR search/dense=none negatives=5 epochs=1  BM25's negatives alone

Every setting of ``Recipe`` is given as setting=value; all other words configure data and first stage as for
memlab.run. The folder is read by ``rank/rerank=cross_encoder cross_encoder.path=DIR``, and fold by fold by
``rank/rerank=cross_fit 'rank.rerank.paths=[DIR1,DIR2,DIR3]'``. Interrupted training goes on when the same line is
given again.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from pydantic import ValidationError

from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.harness import manifest
from memlab.learn.reranker.config import Recipe
from memlab.learn.reranker.examples import NEEDED, examples, part
from memlab.learn.reranker.record import FILE, write
from memlab.learn.reranker.train import Lessons, Trainer, Watch
from memlab.models.local.files import files_digest
from memlab.pipeline import Pipeline
from memlab.runtime.files import atomic_dir
from memlab.stage import spec, spec_digest
from memlab.store import Store, store_at
from memlab.tables import Tables

FIRST_STAGE = "score"
"""The last slot of the first stage, whose ranking gives the negatives."""


def train(tables: Tables, dataset: dict[str, Any], pipeline: Pipeline, recipe: Recipe, store: Store,
          watch: Watch | None = None) -> dict[str, Any]:
    """Fine-tune on the questions of a loaded data set; return the record, which lies beside the weights.

    ``dataset`` is its identity, for the record. The pipeline's lanes give the negatives; its later slots are not
    used. A finished model of the same recipe and examples returns at once. ``watch(step, loss)`` is called as each
    step ends. Raises MemlabError where nothing can be learnt, or the folder holds another model.
    """
    ranked = pipeline.run(tables, store, until=FIRST_STAGE).only(NEEDED)
    fold = part(ranked, recipe.fold)
    taught = examples(ranked, fold, recipe.depth, recipe.roles)
    if not taught.height:
        raise MemlabError("no question has an evidence turn and another turn to tell it from",
                          where="learn/reranker", fix="data with turn-level evidence, or a larger depth")
    lessons = Lessons.of(taught, recipe.limit, recipe.seed)
    settings = {f.name: getattr(recipe, f.name) for f in dataclasses.fields(recipe)
                if f.name not in ("out_model", "base", "checkpoint_seconds")}
    mark = spec_digest({"recipe": settings, "base": files_digest(recipe.base_folder()),
                        "held_out": fold.held_out["key"].to_list(), "lessons": [
                            lessons.queries, lessons.passages, lessons.query.tolist(), lessons.positive.tolist(),
                            [n.tolist() for n in lessons.negatives]]})
    done = _finished(recipe.out_model, mark)
    if done is not None:
        return done
    start = time.perf_counter()
    trainer = Trainer(lessons, recipe)
    checkpoint = recipe.out_model.with_name(f"{recipe.out_model.name}.unfinished.safetensors")
    trainer.train(checkpoint, mark, watch)
    record = {
        "mark": mark, "data": dataset, "fold": recipe.fold, "held_out": fold.held_out["key"].to_list(),
        "learnt": sorted(set(fold.train["text"])), "recipe": spec(settings), "base": files_digest(recipe.base_folder()),
        "first_stage": {slot: spec(stage) for slot, stage in pipeline.between(None, FIRST_STAGE)},
        "counts": {"questions": fold.train.height, "held_out": fold.held_out.height,
                   "questions_learnt": len(lessons.queries), "examples": len(lessons.query),
                   "passages": len(lessons.passages), "forbidden_sessions": fold.forbidden.height,
                   "steps": len(trainer.steps)},
        "losses": tenths(trainer.losses), "seconds": round(time.perf_counter() - start, 1),
        "hardware": manifest.hardware(), "versions": manifest.versions(), **manifest.commit(),
    }
    publish(trainer, recipe.out_model, record)
    _finished(recipe.out_model, mark)  # raises if another model took the folder meanwhile
    checkpoint.unlink(missing_ok=True)
    return record


def tenths(losses: Sequence[float]) -> list[float]:
    """Give the mean loss of each tenth of the steps.

    >>> tenths([4.0, 2.0])
    [4.0, 2.0]
    """
    parts = np.array_split(np.array(losses), min(10, len(losses)))
    return [round(float(p.mean()), 4) for p in parts]


def publish(trainer: Trainer, folder: Path, record: dict[str, Any]) -> None:
    """Write a finished model; the folder is then whole or absent."""
    with atomic_dir(folder) as temporary:
        trainer.save(temporary)
        write(temporary, record)


def _finished(folder: Path, mark: str) -> dict[str, Any] | None:
    """Return the record if this very model is there; raise MemlabError if something else is."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        record: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    if record.get("mark") != mark:
        raise MemlabError("holds something else, or a model of other data or another recipe",
                          where=f"out_model={folder}", fix="give another folder, or delete this one")
    return record


def recipe_of(words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Divide a command line into the settings of ``Recipe`` and the words that memlab.run would read.

    >>> recipe_of(["data=locomo", "fold=1/3", "rate=5e-5"])
    ({'fold': '1/3', 'rate': 5e-05}, ['data=locomo'])
    """
    from memlab.config.overrides import faults

    known = [f.name for f in dataclasses.fields(Recipe) if f.name != "seed"]  # the seed is memlab.run's
    own: dict[str, Any] = {}
    rest, wrong = [], []
    for word in words:
        key = word.partition("=")[0]
        if key in known:
            try:
                own[key] = OverridesParser.create().parse_override(word).value()
            except HydraException:
                wrong.append(f"{word}: cannot be read as key=value")
        elif any("there is no setting" in str(fault) for fault in faults([word])):
            wrong.append(f"{word}: there is no setting '{key}'; {did_you_mean(key, [*known, 'seed', 'data', 'store'])}")
        else:
            rest.append(word)
    if wrong:
        raise Faults(wrong)
    return own, rest


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    from memlab.harness.arm import load
    from memlab.harness.sweep import read

    words = list(sys.argv[1:] if argv is None else argv)
    if not words or {"-h", "--help"} & set(words):
        print(__doc__, Recipe.__doc__, sep="\n")
        return 0
    try:
        own, rest = recipe_of(words)
        Recipe(**own)  # its faults are told before the data are looked for
        sweep = read(rest)
        arm = sweep.arms[0]
        if len(sweep.arms) > 1:
            raise MemlabError("one model is trained at a time; several values were given", fix="one value each")
        recipe = Recipe(**own, seed=arm.seed)
        place = sweep.settings.store
        record = train(load(arm.dataset), {"name": arm.dataset.name, **arm.dataset.identity()}, arm.pipeline, recipe,
                       store_at(str(place) if place else None))
    except ValidationError as error:
        told = [f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]
        print(f"memlab: {Faults(told)}", file=sys.stderr)
        return 2
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        print("\ninterrupted; give the same line again to go on from the last checkpoint", file=sys.stderr)
        return 130
    counts, losses = record["counts"], record["losses"]
    print(f"{recipe.out_model}: {counts['examples']:,} evidence turns of {counts['questions_learnt']:,} questions, "
          f"{counts['steps']:,} steps, {record['seconds']:,.0f} s, loss {losses[0]:.3f} -> {losses[-1]:.3f}; "
          f"{counts['held_out']:,} questions held out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
