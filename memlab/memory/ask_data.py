"""One question asked of the data of an arm: the sessions of one corpus, up to a day."""

from __future__ import annotations

from datetime import date, datetime

import polars as pl

from memlab.data.dataset import Dataset
from memlab.data.jsonl import FolderDataset
from memlab.data.synthetic.dataset import Synthetic
from memlab.experiment.harness.arm import Arm, load
from memlab.memory.results import MAX_RANKS, SearchResult, results
from memlab.pipeline.tables import Tables, add_texts, frame, with_text
from memlab.store.store import store_at
from memlab.support.clock import Clock
from memlab.support.errors import Faults, did_you_mean, natural_order
from memlab.support.foreign import whole_number
from memlab.support.text.display import plural, replace_surrogates


def ask_data(arm: Arm, question: str, corpus: str | None = None, now: date | datetime | None = None,
             store: str | None = None) -> tuple[SearchResult, str]:
    """Ask a question, or one of the data's own by its id; return the result and what the searched sessions are.

    ``corpus`` (a name or number) says whose sessions; ``now`` the day of the question, else that of the data's own
    question, or of the last session. Raises Faults if the corpus is unknown or open.
    """
    pipeline = arm.pipeline.without_judges()
    tables = load(arm.dataset)
    names = dict(tables["ids"].filter(pl.col("kind") == "corpus").select("corpus", "name").iter_rows())
    corpora = {corpus: names.get(corpus, str(corpus)) for corpus in tables["sessions"]["corpus"].unique().sort()}
    own = _own_questions(tables, question)
    chosen = _corpus(arm.dataset, corpora, own, corpus)
    own = own.filter(pl.col("corpus") == chosen)
    own_tables = {name: tables[name].filter(pl.col("corpus") == chosen) for name in ("sessions", "turns")}
    question = own["text"][0] if own.height else question
    day = _clock(arm.dataset, tables).local(now, "now") if now is not None else (
        own["asked_on"][0] if own.height else own_tables["sessions"]["said_on"].max())
    text_id, texts = add_texts(tables["texts"].join(own_tables["turns"], on="text_id", how="semi"),
                               [replace_surrogates(question)])
    one = frame("questions", {"question": [0], "corpus": [chosen], "text_id": text_id, "asked_on": [day]})
    answered = pipeline.run(Tables(texts=texts, questions=one, **own_tables), store_at(store))
    ids = tables["ids"].filter((pl.col("kind") == "session") & (pl.col("corpus") == chosen))
    names_of_sessions = dict(ids.select("session", "name").iter_rows())
    found = SearchResult.of(answered, results(answered, pipeline, MAX_RANKS, names_of_sessions.get))
    return found, f"{corpora[chosen]} of {arm.dataset.name}, {plural(own_tables['sessions'].height, 'session')}"


def _clock(dataset: Dataset, tables: Tables) -> Clock:
    """Return the clock of the data; benchmarks have wall clocks, and no zone."""
    if isinstance(dataset, FolderDataset):
        return dataset.clock()
    clock = Clock()
    for said_on in tables["sessions"]["said_on"].drop_nulls().head(1):
        clock.local(said_on, "the data")
    return clock


def _own_questions(tables: Tables, wanted: str) -> pl.DataFrame:
    """Return (question, corpus, asked_on, text) of the data's questions with these words or this id."""
    ids = tables["ids"].filter(pl.col("kind") == "question").select("question", "name")
    questions = with_text(tables["questions"], tables["texts"]).join(ids, on="question", how="left")
    same = pl.col("text").str.strip_chars().str.to_lowercase() == wanted.strip().lower()
    return questions.filter(same | (pl.col("name") == wanted)).select("question", "corpus", "asked_on", "text")


def _corpus(dataset: Dataset, corpora: dict[int, str], own: pl.DataFrame, wanted: str | None) -> int:
    """Choose the corpus whose sessions are searched."""
    listed = ", ".join(sorted(corpora.values(), key=natural_order)[:40]) + (", ..." if len(corpora) > 40 else "")
    if wanted is not None:
        matches = [corpus for corpus, name in corpora.items() if name == wanted]
        if not matches and (number := whole_number(wanted)) in corpora:
            matches = [number]
        if not matches:
            raise Faults([f"corpus={wanted}: there is none of that name; {did_you_mean(wanted, corpora.values())}"])
        return matches[0]
    if len(corpora) == 1:
        return next(iter(corpora))
    meant = own["corpus"].unique().sort().to_list()
    if len(meant) == 1:
        return int(meant[0])
    if meant:
        listed = ", ".join(corpora[c] for c in meant)
        raise Faults([f"several corpora have this question; choose one with corpus=NAME: {listed}"])
    embedded = isinstance(dataset, Synthetic)
    hint = ("; your own chats: data=custom data.path=FOLDER, of memlab import; or choose a generated life with "
            if embedded else "; choose one with ")
    raise Faults([f"{'the embedded' if embedded else 'these'} data have {len(corpora)} corpora (each the "
                  "sessions of one memory), and this is none of "
                  f"their questions{hint}corpus=NAME: {listed}"])
