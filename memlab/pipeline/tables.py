"""The tables that flow from stage to stage: column names, types, meaning, and the check at each boundary.

Rows are numbered within a run; stages see other numbers of questions and corpora (``memlab.data.numbering``).
Benchmarks hide labels in their own ids (an id that starts with ``answer_`` is evidence), so those are kept in the table
``ids`` alone, which no stage reads. Each text is stored once, in ``texts``; other tables refer to it by its hash, in a
column that ends with ``_id``. ``with_text`` adds the texts.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Iterable, Iterator, Mapping
from html import escape

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.support.errors import MemlabError, did_you_mean

Schema = dict[str, pl.DataType]

_INT, _LONG, _STR, _REAL, _BOOL = pl.Int32(), pl.Int64(), pl.String(), pl.Float64(), pl.Boolean()
_TIME, _TURNS = pl.Datetime("us"), pl.List(pl.Int32)

SCHEMAS: dict[str, Schema] = {
    # each text once; text_id is text_hash(text)
    "texts": {"text_id": _STR, "text": _STR},
    # session is its number in its corpus (haystack or conversation); two sessions may have one text and two dates
    "sessions": {"corpus": _INT, "session": _INT, "said_on": _TIME},
    # role is user or assistant (where two people talk, both are users); speaker is a name or null
    "turns": {"corpus": _INT, "session": _INT, "turn": _INT, "role": _STR, "speaker": _STR, "text_id": _STR},
    # what a session carries beside its words (user, agent, room, source, kind, metadata), or a question its own filter
    # (session is null then), as JSON; query/where reads it and leaves it empty
    "fields": {"corpus": _INT, "session": _INT, "question": _INT, "content": _STR},
    # everything that a system may know about a question
    "questions": {"question": _INT, "corpus": _INT, "text_id": _STR, "asked_on": _TIME},
    # key_id: the text that is searched; value_id: the text that the reader is shown; turns: the turns that it covers;
    # kind: the chunking (turn, round, session, fact, ...), one lane per kind; source: who said it (user, assistant) or
    # "conversation"; category: the kind of fact (preference, date, amount, ...); valid_to: when a later memory replaced
    # it, which counts only if that day is not after the day of the question
    "memories": {
        "memory": _LONG, "corpus": _INT, "session": _INT, "turns": _TURNS, "kind": _STR, "source": _STR,
        "key_id": _STR, "value_id": _STR, "said_on": _TIME, "happened_on": _TIME, "valid_from": _TIME,
        "valid_to": _TIME, "importance": _REAL, "category": _STR,
    },
    # relations between memories, from the later (source) to the earlier one (target); kind is FOLLOWS, RELATED_TO,
    # SAME_TOPIC, ELABORATES, CONTRADICTS or SUPERSEDES; confidence in [0, 1]; known from the day of its source
    "edges": {"source": _LONG, "target": _LONG, "kind": _STR, "confidence": _REAL},
    # people, places, organisations and things that a session names, one row per mention; known from that day
    "entities": {"corpus": _INT, "session": _INT, "name": _STR, "kind": _STR, "summary": _STR},
    # relationships between named entities that a session states; said_on is the day stated, else the session's
    "links": {"corpus": _INT, "session": _INT, "source": _STR, "relation": _STR, "target": _STR, "said_on": _TIME},
    # the class of a question by its words: its first row; further rows are classes that fit as well
    "classes": {"question": _INT, "class": _STR},
    # the queries of a question; kind is "original" for the question itself; window is [start, end] or null
    "queries": {"query": _LONG, "question": _INT, "kind": _STR, "text_id": _STR, "weight": _REAL,
                "window": pl.List(pl.Datetime("us"))},
    # one row per (query, lane, memory) found; rank counts from 1 within (query, lane)
    "hits": {"query": _LONG, "lane": _STR, "memory": _LONG, "score": _REAL, "rank": _INT},
    # what is ranked: level is memory, turn or session; turns are those that the unit stands for
    "units": {"unit": _LONG, "corpus": _INT, "session": _INT, "turns": _TURNS, "level": _STR},
    # rank counts from 1 within a question; one further float column per signal (a lane's name, "rerank", ...)
    "ranking": {"question": _INT, "unit": _LONG, "score": _REAL, "rank": _INT, "selected": _BOOL},
    # what the reader is shown, by position; tokens as the pipeline's token counter counts them
    "context": {"question": _INT, "position": _INT, "unit": _LONG, "text_id": _STR, "tokens": _INT},
    # the reader's answers; sample counts from 0; tokens and seconds as the server reports them; dropped: the number of
    # context items that did not fit into the reader's window; chat.logprobs=true adds logprob, null where unknown
    "answers": {"question": _INT, "sample": _INT, "text_id": _STR, "prompt_tokens": _INT, "completion_tokens": _INT,
                "seconds": _REAL, "dropped": _INT},
    # one row per (question, judge); score in [0, 1], null without a verdict (an unreadable reply, a type that the judge
    # does not cover); correct: whether the judge counts the answer as right; reply: the judge's own words; fault: why
    # the reply is not complete (empty, cut off, withheld), null if it is
    "verdicts": {"question": _INT, "judge": _STR, "score": _REAL, "correct": _BOOL, "reply": _STR, "fault": _STR},
    # why an answer was right or wrong; reached: the last stage that the evidence reached, null without evidence; cause:
    # found by intervention, where sampled; one row per view of when evidence counts as present (any piece, or all)
    "attribution": {"question": _INT, "view": _STR, "reached": _STR, "right": _BOOL, "sampled": _BOOL, "cause": _STR},
    # what the fits of a learned ranking use: the gain of all splits by a feature, summed over the fits
    "importances": {"feature": _STR, "gain": _REAL},
    # how many of how many went wrong (replies that could not be read, texts that were cut); a stage may return notes
    # beside the tables that it declares, and the pipeline appends them
    "notes": {"what": _STR, "number": _LONG, "of": _LONG},
    # gold; evidence sessions and turns; turn is null where only the session is known
    "evidence": {"question": _INT, "session": _INT, "turn": _INT},
    # gold; sessions and turns that say what no longer holds; a piece that is evidence too is no valid evidence
    "outdated": {"question": _INT, "session": _INT, "turn": _INT},
    # gold; abstain: the right answer is to decline; scored: the question counts in retrieval averages; label_error:
    # what an audit found wrong with the label, else null
    "gold": {"question": _INT, "answer": _STR, "category": _STR, "abstain": _BOOL, "scored": _BOOL,
             "label_error": _STR},
    # kind is corpus, session, turn or question; name is the benchmark's own id
    "ids": {"kind": _STR, "corpus": _INT, "session": _INT, "turn": _INT, "question": _INT, "name": _STR},
}

GOLD = frozenset({"evidence", "outdated", "gold", "ids"})
"""Tables that only data, judge, evaluate, learn, oracle and report may declare."""

PLACED = ("sessions", "turns", "memories", "entities", "links")
"""Tables whose rows belong to a session."""

OPTIONAL = ("edges", "entities", "links", "notes")
"""Tables that most configurations leave empty."""

OPEN = frozenset({"ranking", "answers"})
"""Tables that may carry further float columns (signals; the log-probability of an answer)."""

SESSION = ["corpus", "session"]
"""The key of a session: its number counts within its corpus."""

DIGITS = 6
"""Scores are rounded to this many decimals before they are compared (fp32 vectors agree to 1e-5); ties go by id."""


LARGE = 100_000
"""Rows above which a table is known by what made it, where that is known."""


def text_hash(text: str) -> str:
    """Name a text by 128 bits of its BLAKE2b digest, in hexadecimal.

    >>> text_hash("hello")
    '46fb7408d4f285228f4af516ea25851b'
    """
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def frame_digest(table: pl.DataFrame) -> str:
    """Digest a frame's content, names and types; equal frames give equal digests in any process.

    >>> frame_digest(pl.DataFrame({"a": [1, 2]})) == frame_digest(pl.concat([pl.DataFrame({"a": [n]}) for n in (1, 2)]))
    True
    """
    buffer = io.BytesIO()
    table.rechunk().write_ipc(buffer)
    return hashlib.blake2b(buffer.getbuffer(), digest_size=16).hexdigest()


def texts_frame(texts: Iterable[str]) -> pl.DataFrame:
    """Build a ``texts`` table: one row per distinct text, in order of first appearance."""
    distinct = list(dict.fromkeys(texts))
    return pl.DataFrame({"text_id": [text_hash(t) for t in distinct], "text": distinct}, schema=SCHEMAS["texts"])


def with_text(rows: pl.DataFrame, texts: pl.DataFrame, column: str = "text_id", name: str = "text") -> pl.DataFrame:
    """Return the rows in their order with a column ``name``: the text of the id in ``column``, null without an id.

    >>> with_text(pl.DataFrame({"key_id": [text_hash("b")]}), texts_frame(["a", "b"]), "key_id", "key")["key"].item()
    'b'
    """
    lookup = texts.select(pl.col("text_id").alias(column), pl.col("text").alias(name))
    if rows.height < lookup.height // 4:  # a join looks up faster in a small table
        lookup = lookup.filter(_among(column, rows[column].unique()))
    return rows.join(lookup, on=column, how="left", maintain_order="left")


def add_texts(texts: pl.DataFrame, new_texts: Iterable[str]) -> tuple[pl.Series, pl.DataFrame]:
    """Return the ids (n,) of some texts, and the table ``texts`` with the new ones appended.

    >>> ids, both = add_texts(texts_frame(["a"]), ["b", "a", "b"])
    >>> with_text(ids.to_frame(), both)["text"].to_list(), both["text"].to_list()
    (['b', 'a', 'b'], ['a', 'b'])
    """
    new_texts = list(new_texts)
    new = texts_frame(new_texts)
    ids = dict(zip(new["text"], new["text_id"]))
    known = texts.filter(_among("text_id", new["text_id"]))["text_id"]
    new = new.filter(~pl.col("text_id").is_in(known.implode()))
    return pl.Series("text_id", [ids[text] for text in new_texts], pl.String), pl.concat([texts, new])


def merge_texts(*tables: pl.DataFrame) -> pl.DataFrame:
    """Concatenate ``texts`` tables: each text once, in order of first appearance."""
    return pl.concat(tables).unique("text_id", keep="first", maintain_order=True)


def distinct_texts(texts: pl.DataFrame, ids: pl.Series) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return the ``texts`` with these ids (n,), each once, and for each id the number of its row there, (n,)."""
    used = texts.filter(_among("text_id", ids.unique()))
    at = ids.alias("text_id").to_frame().join(
        used.select("text_id").with_row_index("at"), on="text_id", how="left", maintain_order="left")["at"]
    assert at.null_count() == 0, f"{at.null_count()} ids are not in the table texts"
    return used, at.to_numpy().astype(np.int64)


def _among(column: str, ids: pl.Series) -> pl.Expr:
    """Whether a column holds one of some distinct ids; a few are compared one by one, in a quarter of the time."""
    ids = ids.drop_nulls()
    if 0 < len(ids) <= 2:  # a question's own text, looked up among all texts of a live memory
        return pl.any_horizontal(pl.col(column) == one for one in ids)
    return pl.col(column).is_in(ids.implode())


def as_of(said: str = "said_on", asked: str | pl.Expr = "asked_on") -> pl.Expr:
    """The as-of rule: true unless ``said`` lies on a later day than ``asked``.

    Days count, not minutes: benchmarks stamp evidence a few hours after the question of the same day. Memories without
    a date are visible to every question, and a question without a date sees everything.

    >>> from datetime import datetime
    >>> rows = pl.DataFrame({"said_on": [datetime(2023, 5, 20, 9), datetime(2023, 5, 21), None]})
    >>> rows.select(as_of(asked=pl.lit(datetime(2023, 5, 20, 8)))).to_series().to_list()
    [True, False, True]
    """
    today = pl.col(asked) if isinstance(asked, str) else asked
    return (pl.col(said).dt.date() <= today.dt.date()).fill_null(True)


def empty(name: str) -> pl.DataFrame:
    """Return the table of that name without rows."""
    return pl.DataFrame(schema=SCHEMAS[name])


def frame(name: str, columns: Mapping[str, object]) -> pl.DataFrame:
    """Build a table from columns; columns of its schema that are missing become null, order is the schema's."""
    schema = SCHEMAS[name]
    table = pl.DataFrame(dict(columns), schema_overrides={c: t for c, t in schema.items() if c in columns})
    absent = [pl.lit(None, dtype=t).alias(c) for c, t in schema.items() if c not in columns]
    return check(name, table.with_columns(absent).select([*schema, *(c for c in table.columns if c not in schema)]))


def check(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """Return the table if it has the columns of its schema; raise MemlabError otherwise."""
    if name not in SCHEMAS:
        raise MemlabError(f"there is no table '{name}'", fix=did_you_mean(name, SCHEMAS))
    schema, given = SCHEMAS[name], table.schema
    wrong = [f"{c} is {given[c]}, expected {t}" for c, t in schema.items() if c in given and given[c] != t]
    wrong += [f"{c} is missing" for c in schema if c not in given]
    for column, dtype in given.items():
        if column not in schema and not (name in OPEN and dtype.is_float()):
            wrong.append(f"{column} is not a column of this table")
    if wrong:
        raise MemlabError("; ".join(wrong), where=f"table {name}")
    return table


class Tables(Mapping[str, pl.DataFrame]):
    """An immutable set of tables, checked against their schemas on entry.

    >>> t = Tables(texts=texts_frame(["a", "b", "a"]))
    >>> t["texts"].height
    2
    >>> t
    <Tables, rows: texts 2>
    >>> t["gold"]
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: table 'gold' is not here (here: texts). Fix: declare it in the stage's reads
    """

    def __init__(self, **frames: pl.DataFrame) -> None:
        self._frames = {name: check(name, table) for name, table in frames.items()}
        self._digests: dict[str, str] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._frames:
            names = ", ".join(sorted(self._frames)) or "none"
            raise MemlabError(f"table '{name}' is not here (here: {names})", fix="declare it in the stage's reads")
        return self._frames[name]

    def __contains__(self, name: object) -> bool:
        return name in self._frames

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {table.height:,}" for name, table in self._frames.items())
        return f"<Tables, rows: {sizes}>" if sizes else "<Tables: none>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{name}</td><td>{table.height:,}</td><td>{escape(', '.join(table.columns))}</td></tr>"
                       for name, table in self._frames.items())
        return f"<table><tr><th>table</th><th>rows</th><th>columns</th></tr>{rows}</table>"

    def only(self, names: Iterable[str]) -> Tables:
        """Return just these tables; those absent are left out, so that reading them raises."""
        part = Tables()
        for name in names:
            if name in self._frames:
                part._frames[name] = self._frames[name]
                if name in self._digests:
                    part._digests[name] = self._digests[name]
        return part

    def updated(self, frames: Mapping[str, pl.DataFrame]) -> Tables:
        """Return these tables with some added or replaced."""
        merged = self.only(self._frames)
        for name, table in frames.items():
            merged._frames[name] = check(name, table)
            merged._digests.pop(name, None)
            if isinstance(frames, Tables) and name in frames._digests:
                merged._digests[name] = frames._digests[name]
        return merged

    def digest(self, names: Iterable[str]) -> str:
        """Digest the content of these tables; the same content gives the same digest in any process.

        The texts are known by their ids, which are digests of them; large tables by ``name_by_origin``.
        """
        total = hashlib.blake2b(digest_size=16)
        for name in sorted(names):
            if name in self._frames:
                if name not in self._digests:
                    table = self._frames[name]
                    self._digests[name] = frame_digest(table.select("text_id") if name == "texts" else table)
                total.update(f"{name}={self._digests[name]};".encode())
        return total.hexdigest()

    def has_digests(self, names: Iterable[str]) -> bool:
        """Return whether the digest of each of these tables is known, so that ``digest`` costs nothing."""
        return all(name in self._digests for name in names)

    def name_by_origin(self, *origin: str, least: int | None = None) -> None:
        """Digest the large tables, of ``least`` rows or more, by what made them, and all others by their content.

        A digest of millions of hits takes seconds; the stage that made them and what it read tell them apart as well.
        """
        for name, table in self._frames.items():
            if name not in self._digests and table.height >= (LARGE + 1 if least is None else least):
                self._digests[name] = hashlib.blake2b("\0".join((name, *origin)).encode(), digest_size=16).hexdigest()
        self.digest(self)


class Notes:
    """Rows of the table ``notes``, gathered while a stage runs.

    >>> notes = Notes()
    >>> notes.add(2, 40, "replies could not be read; those questions have none")
    >>> notes.table().rows()
    [('replies could not be read', 2, 40)]
    """

    def __init__(self) -> None:
        self._rows: list[tuple[str, int, int]] = []

    def add(self, number: int, of: int, what: str) -> None:
        """Add a row unless ``number`` is 0; text after a semicolon in ``what`` is left out."""
        if number:
            self._rows.append((what.partition(";")[0], number, of))

    def warn(self, number: int, of: int, what: str) -> None:
        """Add a row and issue a warning, unless ``number`` is 0."""
        self.add(number, of, what)
        if number:
            warnings.warn(f"{number:,} of {of:,} {what}", stacklevel=3)

    def include(self, tables: Tables) -> Tables:
        """Add the notes among the tables that another stage returned; return these tables."""
        self._rows += tables["notes"].rows() if "notes" in tables else []
        return tables

    def table(self) -> pl.DataFrame:
        """Return the table ``notes``."""
        return pl.DataFrame(self._rows, schema=SCHEMAS["notes"], orient="row")
