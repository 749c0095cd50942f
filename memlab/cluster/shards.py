"""One arm over several jobs: each ranks a part of the corpora, one joins the parts and does the rest.

Up to the slot ``LAST_RANKED`` a question meets its own corpus alone, so that a part gives what the whole would. Numbers
of memories, queries and units count from 0 in every part; they are moved behind those of the parts before, which
gives the numbers, and so the ties, of one job over all. Selection, packing, answers and judges come after the merge,
since a selection may have been learned on all questions; what a model answered for a part is in the store by then.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.data.dataset import Dataset
from memlab.data.subset import keep
from memlab.errors import MemlabError
from memlab.harness.arm import Arm, Ranked, load
from memlab.pipeline import LAST_RANKED, OPTIONAL, Pipeline
from memlab.runtime.files import atomic_dir, read_json, write_errors, write_json
from memlab.store import Store
from memlab.tables import Tables, merge_texts

KEPT = ("memories", "queries", "units", "ranking", "classes", *OPTIONAL)
"""Tables of a part that later slots and the run folder need, beside texts that stages wrote."""

NUMBERED = {"memory": "memories", "query": "queries"}
"""Columns that number the rows of a table of the part."""

SORTED = {"memories": ["memory"], "queries": ["query"], "units": ["unit"], "ranking": ["question", "rank"]}


def corpora_of(tables: Tables, part: int, of: int) -> list[int]:
    """Name the corpora of a part: a run of numbers, so that all parts have nearly the same number of turns.

    More parts than corpora leave some parts without any.
    """
    sizes = tables["sessions"].select("corpus").unique().join(
        tables["turns"].group_by("corpus").len(), on="corpus", how="left").sort("corpus").fill_null(0)
    turns = sizes["len"].to_numpy().astype(np.float64)
    middle = np.cumsum(turns) - turns / 2  # a corpus belongs where its middle lies
    owner = np.minimum((middle * of / max(turns.sum(), 1.0)).astype(np.int64), of - 1)
    return sizes["corpus"].filter(pl.Series(owner == part)).to_list()


def cut(dataset: Dataset, part: int, of: int) -> Tables:
    """Return the tables of one part of the corpora; the whole data set where there is one part."""
    whole = load(dataset)
    if of == 1:
        return whole
    corpora = corpora_of(whole, part, of)
    return keep(whole, whole["questions"].filter(pl.col("corpus").is_in(corpora)), corpora)


def place(arm: Arm, part: int, of: int) -> Path:
    """Where a part of an arm lies until it is merged."""
    return arm.arms_folder() / f"{arm.folder().name}.shards" / f"{part}-of-{of}"


def run_part(arm: Arm, store: Store, part: int, of: int) -> Path:
    """Rank the corpora of one part, and ask what models are asked about them; a part that is there returns at once."""
    folder = place(arm, part, of)
    if arm.finished() or (folder / "part.json").is_file():
        return folder
    load(arm.dataset)
    start, before = time.perf_counter(), Counter(store.made)
    mine = cut(arm.dataset, part, of)
    seconds: dict[str, float] = {"data": time.perf_counter() - start}
    tables = arm.pipeline.run(mine, store, seconds.__setitem__, until=LAST_RANKED)
    if not type(arm.pipeline.select).__module__.startswith("memlab.learn."):  # else it would ask for other contexts
        arm.pipeline.run(tables, store, after=LAST_RANKED)
    written = tables["texts"].join(mine["texts"], on="text_id", how="anti")
    rows = {name: mine[name].height for name in ("turns", "sessions")} | {
        name: tables[name].height for name in NUMBERED.values()}
    record = {"rows": rows, "seconds": seconds, "made": store.made - before}
    _place(folder, {name: tables[name] for name in _kept(arm.pipeline)} | {"texts": written}, record)
    return folder


def _place(folder: Path, frames: dict[str, pl.DataFrame], record: dict[str, Any]) -> None:
    """Write a part whole or not at all."""
    fix = "free some space there and run the same line again"
    with write_errors("a shard", folder.parent, fix), atomic_dir(folder) as temporary:
        for name, frame in frames.items():
            frame.write_parquet(temporary / f"{name}.parquet")
        write_json(temporary / "part.json", record)


def merged(arm: Arm, of: int) -> Ranked:
    """Join the parts of an arm; raises MemlabError that names the parts that are missing."""
    folders = [place(arm, part, of) for part in range(of)]
    missing = [str(i + 1) for i, folder in enumerate(folders) if not (folder / "part.json").is_file()]
    if missing:
        raise MemlabError(f"{len(missing)} of {of} shards did not end: {', '.join(missing)}", where=arm.name,
                          fix="run the same line again: only what is missing is done")
    records = [read_json(folder / "part.json") for folder in folders]
    whole = load(arm.dataset)
    shift: Counter[str] = Counter()
    parts: dict[str, list[pl.DataFrame]] = {}
    for folder, record in zip(folders, records):
        for name in (*_kept(arm.pipeline), "texts"):
            frame = pl.read_parquet(folder / f"{name}.parquet")
            parts.setdefault(name, []).append(_shifted(frame, name, folder, shift))
        shift.update(record["rows"])
    joined = {name: pl.concat(some, how="diagonal") for name, some in parts.items()}
    joined["texts"] = merge_texts(whole["texts"], joined["texts"])
    tables = whole.updated({name: frame.sort(SORTED[name]) if name in SORTED else frame
                            for name, frame in joined.items()})
    seconds: Counter[str] = Counter()
    for record in records:
        seconds.update(record["seconds"])
    return Ranked(tables, dict(seconds), sum((Counter(record["made"]) for record in records), Counter()))


def run_all(arm: Arm, store: Store, of: int) -> Ranked:
    """Run the parts of an arm one after another, and join them: the same figures, in one process."""
    for part in range(of):
        run_part(arm, store, part, of)
    return merged(arm, of)


def forget(arm: Arm) -> None:
    """Remove the parts of an arm that is finished."""
    shutil.rmtree(arm.arms_folder() / f"{arm.folder().name}.shards", ignore_errors=True)


def _kept(pipeline: Pipeline) -> list[str]:
    hits = any("hits" in stage.reads for _, stage in pipeline.between(LAST_RANKED, None))
    return [*KEPT, "hits"] if hits else list(KEPT)


def _shifted(frame: pl.DataFrame, name: str, folder: Path, shift: Counter[str]) -> pl.DataFrame:
    """Move the numbers of a part behind those of the parts before."""
    moved: list[Any] = [pl.col(c) + shift[rows] for c, rows in NUMBERED.items() if c in frame.columns]
    if name == "edges":
        moved += [pl.col(c) + shift["memories"] for c in ("source", "target")]
    if name == "units":
        moved.append(pl.col("unit") + _by_level(pl.col("level"), shift))
    if name == "ranking" and frame.height:
        level = pl.read_parquet(folder / "units.parquet", columns=["level"])["level"][0]
        moved.append(pl.col("unit") + shift[LEVELS[level]])
    return frame.with_columns(moved)


LEVELS = {"turn": "turns", "session": "sessions", "memory": "memories"}
"""What numbers the units of a level (memlab.rank.units)."""


def _by_level(level: pl.Expr, shift: Counter[str]) -> pl.Expr:
    return level.replace_strict({name: shift[rows] for name, rows in LEVELS.items()}, return_dtype=pl.Int64)
