"""Work that arms share or split: texts encoded and pairs scored once, and shards of an arm.

Several jobs rank one part of the corpora each, one job merges the parts and does the rest. Up to the slot
``LAST_RANKED`` a question depends on its own corpus alone, so a part gives the same ranking as the whole. Ids of
memories, queries and units count from 0 in every part; the merge adds the counts of the earlier parts, which gives the
same ids, and so the same ties, as a single job. Selection, packing, answers and judges follow the merge, since a
selection may be fitted on all questions; the models' replies for each part are then in the store.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.data.dataset import Dataset
from memlab.data.subset import keep
from memlab.experiment.harness.arm import Arm, Ranked, load
from memlab.experiment.harness.run_tables import lane_embedders
from memlab.models.protocols import Embedder, Role, TokenMatcher, models_in
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import LANES, LAST_RANKED, LAST_WRITTEN
from memlab.pipeline.stage import learns, spec_digest
from memlab.pipeline.tables import OPTIONAL, Tables, merge_texts
from memlab.stages.search.hits import of_kinds
from memlab.stages.search.late_interaction import WeightedLate
from memlab.store import Store
from memlab.store.completions import Totals, merge_totals
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_dir, write_json, write_parquet
from memlab.support.foreign import read_json


def asks_before_search(arm: Arm) -> bool:
    """Return whether an arm asks a model of any kind before it searches."""
    return any(models_in([stage for _, stage in arm.pipeline.between(None, LAST_WRITTEN)]))


def write(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Run the slots before the searches on all data, so that no two parts ask a model about the same session."""
    del part, of
    for arm in arms:
        if not arm.is_finished():
            arm.pipeline.run(load(arm.dataset), store, until=LAST_WRITTEN)


def prepare(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Encode the union of the arms' keys and queries; each of several parts takes its share of the text hashes.

    The slots before the searches run here as well, so that the store also holds the replies that they need.
    """
    encoded: set[tuple[str, str, str]] = set()
    for arm in arms:
        if arm.is_finished():
            continue
        tables = arm.pipeline.run(load(arm.dataset), store, until=LAST_WRITTEN)
        for stage, embedder in lane_embedders(arm.pipeline):
            for role, texts in _texts_of_part(stage, tables, part, of):
                key = (spec_digest(embedder), role, spec_digest(texts["text_id"].to_list()))
                if texts.height and key not in encoded:
                    encoded.add(key)
                    store.stored_vectors(embedder, texts, role)
                    if role == "document":  # every arm reports truncation, and should not load the model for it
                        store.truncated(embedder, texts, role)
        for _, stage in arm.pipeline.stages():
            if isinstance(stage, WeightedLate):
                for role, texts in _texts_of_part(stage, tables, part, of):
                    if texts.height:
                        precision = stage.number_format() if role == "document" else "fp32"
                        store.token_vectors(stage.matcher, texts, role, precision)


def _texts_of_part(stage: Any, tables: Tables, part: int, of: int) -> list[tuple[Role, pl.DataFrame]]:
    """Return the texts of this part that a lane encodes, by role."""
    memories = of_kinds(tables["memories"], getattr(stage, "kinds", None))
    share = pl.col("text_id").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64) % of
    mine = tables["texts"].filter(share == part).sort("text_id")
    return [("document", mine.filter(pl.col("text_id").is_in(memories["key_id"].unique().implode()))),
            ("query", mine.filter(pl.col("text_id").is_in(tables["queries"]["text_id"].unique().implode())))]


def work_keys(arm: Arm) -> dict[str, str]:
    """Return a key for each slot that asks a model to rank: the digest of the data and of all stages up to the slot.

    Equal keys stand for equal work. A lane's vectors do not count, nor do its token vectors: ``prepare`` makes them.
    """
    keys: dict[str, str] = {}
    pipeline = arm.pipeline
    for slot, stage in pipeline.between(LAST_WRITTEN, LAST_RANKED):
        prepared = () if slot not in LANES else TokenMatcher if isinstance(stage, WeightedLate) else Embedder
        if any(not isinstance(model, prepared) for model in models_in(stage)):
            stages = [stage for _, stage in pipeline.between(None, slot)]
            keys[slot] = spec_digest([arm.dataset.identity(), pipeline.tokens, *stages])
    return keys


def shared_groups(arms: Sequence[Arm], bundles: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Group the arms that share work with an arm of another job; no work key is in two groups.

    ``bundles`` are the arms of each job, by number. If several arms of a job share the same work with other jobs, one
    of them represents all, so that any two arms of a group belong to different jobs.
    """
    keys = {n: list(work_keys(arms[n]).values()) for bundle in bundles for n in bundle}
    jobs: dict[str, set[int]] = {}
    for job, bundle in enumerate(bundles):
        for key in (key for n in bundle for key in keys[n]):
            jobs.setdefault(key, set()).add(job)
    groups: dict[str, dict[tuple[int, str], int]] = {}
    for job, bundle in enumerate(bundles):
        for n in bundle:
            if shared := [key for key in keys[n] if len(jobs[key]) > 1]:
                groups.setdefault(shared[0], {}).setdefault((job, shared[-1]), n)
    return [tuple(sorted(group.values())) for group in groups.values()]


def score(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Rank one part of the corpora up to the last slot that these arms share, to store all shared work."""
    keys = [{} if arm.is_finished() else work_keys(arm) for arm in arms]
    every = [key for own in keys for key in own.values()]
    ranked: set[str] = set()
    for arm, own in zip(arms, keys):
        common = [(slot, key) for slot, key in own.items() if every.count(key) > 1]
        if common and common[-1][1] not in ranked:
            ranked.add(common[-1][1])
            arm.pipeline.run(load_part(arm.dataset, part, of), store, until=common[-1][0])


MERGED_TABLES = ("memories", "queries", "units", "ranking", "classes", *OPTIONAL)
"""Tables of a part that later slots and the run folder need, beside the texts that stages wrote."""

WRITTEN_BY_SOME = ("importances", "sessions", "turns", "questions")
"""Further tables of a part, where a stage writes them: a saved fit, or a filter of what is searched."""

ID_TABLES = {"memory": "memories", "query": "queries"}
"""Id columns, and the tables whose rows they number."""

SORT_KEYS = {"memories": ["memory"], "queries": ["query"], "units": ["unit"], "ranking": ["question", "rank"],
             "classes": ["question"], "questions": ["question"]}

UNIT_TABLES = {"turn": "turns", "session": "sessions", "memory": "memories"}
"""The table whose rows number the units of each level (memlab.stages.rank.units)."""


def corpora_of_part(tables: Tables, part: int, of: int) -> list[int]:
    """Return the corpora of a part: consecutive numbers, with nearly the same number of turns in each part.

    If there are more parts than corpora, some parts are empty.
    """
    sizes = tables["sessions"].select("corpus").unique().join(
        tables["turns"].group_by("corpus").len(), on="corpus", how="left").sort("corpus").fill_null(0)
    turns = sizes["len"].to_numpy().astype(np.float64)
    middle = np.cumsum(turns) - turns / 2  # a corpus belongs to the part that its middle falls into
    owner = np.minimum((middle * of / max(turns.sum(), 1.0)).astype(np.int64), of - 1)
    return sizes["corpus"].filter(pl.Series(owner == part)).to_list()


def load_part(dataset: Dataset, part: int, of: int) -> Tables:
    """Load the tables of one part of the corpora; the whole data set if there is one part."""
    whole = load(dataset)
    if of == 1:
        return whole
    corpora = corpora_of_part(whole, part, of)
    return keep(whole, whole["questions"].filter(pl.col("corpus").is_in(corpora)), corpora)


def _shards_folder(arm: Arm) -> Path:
    return arm.arms_folder() / f"{arm.folder().name}.shards"


def part_folder(arm: Arm, part: int, of: int) -> Path:
    """Return the folder of a part of an arm until the merge."""
    return _shards_folder(arm) / f"{part}-of-{of}"


def run_part(arm: Arm, store: Store, part: int, of: int) -> Path:
    """Rank the corpora of one part and ask models about them, unless this is done; return the part's folder."""
    folder = part_folder(arm, part, of)
    if arm.is_finished() or (folder / "part.json").is_file():
        return folder
    load(arm.dataset)
    start, before = time.perf_counter(), Counter(store.made)
    mine = load_part(arm.dataset, part, of)
    seconds: dict[str, float] = {"data": time.perf_counter() - start}
    costs: dict[str, float] = {}
    replies: dict[str, Totals] = {}
    tables = arm.pipeline.run(mine, store, seconds.__setitem__, until=LAST_RANKED, costs=costs, replies=replies)
    if not learns(arm.pipeline.select):  # a part has not all questions
        arm.pipeline.run(tables, store, after=LAST_RANKED)
    new_texts = tables["texts"].join(mine["texts"], on="text_id", how="anti")
    rows = {name: tables[name].height for name in ("turns", "sessions", *ID_TABLES.values())}
    record = {"rows": rows, "seconds": seconds, "costs": costs, "replies": replies,
              "made": store.made - before}
    _write_part(folder, {name: tables[name] for name in _merged_tables(arm.pipeline)} | {"texts": new_texts}, record)
    return folder


def _write_part(folder: Path, frames: dict[str, pl.DataFrame], record: dict[str, Any]) -> None:
    """Write a part completely or not at all."""
    with atomic_dir(folder) as temporary:
        for name, frame in frames.items():
            write_parquet(frame, temporary / f"{name}.parquet")
        write_json(temporary / "part.json", record)


def merge_parts(arm: Arm, of: int) -> Ranked:
    """Join the parts of an arm; raise MemlabError that names the missing parts."""
    folders = [part_folder(arm, part, of) for part in range(of)]
    missing = [str(i + 1) for i, folder in enumerate(folders) if not (folder / "part.json").is_file()]
    if missing:
        raise MemlabError(f"{len(missing)} of {of} shards did not end: {', '.join(missing)}", where=arm.name,
                          fix="run the same command again: finished shards are kept")
    records = [read_json(folder / "part.json") for folder in folders]
    whole = load(arm.dataset)
    shift: Counter[str] = Counter()
    frames: dict[str, list[pl.DataFrame]] = {}
    for folder, record in zip(folders, records):
        for name in (*_merged_tables(arm.pipeline), "texts"):
            frame = pl.read_parquet(folder / f"{name}.parquet")
            frames.setdefault(name, []).append(_shift_ids(frame, name, folder, shift))
        shift.update(record["rows"])
    merged = {name: pl.concat(several, how="diagonal") for name, several in frames.items()}
    merged["texts"] = merge_texts(whole["texts"], merged["texts"])
    if "importances" in merged:  # of the same fit in every part, except in those without questions
        merged["importances"] = merged["importances"].unique(maintain_order=True)
    tables = whole.updated({name: frame.sort(SORT_KEYS[name], maintain_order=True) if name in SORT_KEYS else frame
                            for name, frame in merged.items()})
    seconds: Counter[str] = Counter()
    costs: Counter[str] = Counter()
    for record in records:
        seconds.update(record["seconds"])
        costs.update(record["costs"])
    return Ranked(tables, dict(seconds), sum((Counter(record["made"]) for record in records), Counter()),
                  dict(costs), merge_totals([record["replies"] for record in records]))


def run_all(arm: Arm, store: Store, of: int) -> Ranked:
    """Run the parts of an arm one after another in this process, and merge them."""
    for part in range(of):
        run_part(arm, store, part, of)
    return merge_parts(arm, of)


def remove_parts(arm: Arm) -> None:
    """Remove the parts of a finished arm."""
    shutil.rmtree(_shards_folder(arm), ignore_errors=True)


def _merged_tables(pipeline: Pipeline) -> list[str]:
    hits = any("hits" in stage.reads for _, stage in pipeline.between(LAST_RANKED, None))
    written = {name for _, stage in pipeline.between(None, LAST_RANKED) for name in stage.writes}
    return [*MERGED_TABLES, *(["hits"] if hits else []), *(name for name in WRITTEN_BY_SOME if name in written)]


def _shift_ids(frame: pl.DataFrame, name: str, folder: Path, shift: Counter[str]) -> pl.DataFrame:
    """Add to the ids in a table of a part the number of rows in the parts before."""
    columns: list[Any] = [pl.col(c) + shift[table] for c, table in ID_TABLES.items() if c in frame.columns]
    if name == "edges":
        columns += [pl.col(c) + shift["memories"] for c in ("source", "target")]
    if name == "units":
        columns.append(pl.col("unit") + pl.col("level").replace_strict(
            {level: shift[table] for level, table in UNIT_TABLES.items()}, return_dtype=pl.Int64))
    if name == "ranking" and frame.height:
        level = pl.read_parquet(folder / "units.parquet", columns=["level"])["level"][0]
        columns.append(pl.col("unit") + shift[UNIT_TABLES[level]])
    return frame.with_columns(columns)
