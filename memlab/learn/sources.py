"""Training examples of a data set, written to a file: ``memlab train pairs file=FILE.jsonl ...``.

    memlab train pairs data=locomo data.path=FILE file=a.jsonl            all questions with evidence
    memlab train pairs data=locomo data.path=FILE file=a.jsonl fold=1/3   without those of fold 1 of 3
    memlab train pairs data=custom data.path=DIR file=a.jsonl questions=rules   asked by rules about statements of a log
    memlab train encoder 'pairs={a.jsonl: 1, b.jsonl: 0.5}' out_model=DIR   an encoder learns from several files

Every setting of ``PairRecipe`` is given as setting=value. All other words configure the data and the first stage, whose
ranking gives the hard negatives, as for memlab run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from memlab.data.dataset import GroupBy
from memlab.data.questions.clauses import StatedFact
from memlab.data.questions.facts import facts_of
from memlab.experiment.harness.arm import load
from memlab.learn.command import read_arm
from memlab.learn.pairs import NEEDED, Fold, draw_examples, examples, read_examples, split, write_examples
from memlab.learn.recipe import PairRecipe, TrainingRecipe, train_command
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import spec
from memlab.pipeline.tables import Tables, add_texts, frame, text_hash, with_text
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.machine import OF_A_RUN, enough_memory

OF_EXAMPLES = ("questions", "fold", "depth", "roles", "absolute_margin", "relative_margin", "limit")
"""Settings that decide which examples there are."""

FIRST_STAGE = "score"
"""The last slot of the first stage, whose ranking gives the negatives."""


def with_rule_questions(tables: Tables) -> Tables:
    """Return the tables with the questions that rules make from the turns, and these turns as their evidence.

    Neither the questions nor the gold of the data are read. A question to which several turns of a corpus give rise has
    all of them as evidence; one whose first turn stands in another corpus too is asked in the first corpus alone.
    """
    turns = with_text(tables["turns"], tables["texts"]).sort("corpus", "session", "turn")
    facts: dict[tuple[int, str], StatedFact] = {}
    places: dict[tuple[int, str], list[tuple[int, int]]] = {}
    statements: set[tuple[str, str]] = set()
    for corpus, session, turn, role, speaker, text in turns.select(
            "corpus", "session", "turn", "role", "speaker", "text").iter_rows():
        of_assistant = role != "user"
        for fact in facts_of(text, None if of_assistant else speaker, assistant=of_assistant):
            question = fact.question.casefold()
            if (corpus, question) in facts or (question, text) not in statements:
                statements.add((question, text))
                facts.setdefault((corpus, question), fact)
                places.setdefault((corpus, question), []).append((session, turn))
    ids, texts = add_texts(tables["texts"], [fact.question for fact in facts.values()])
    evidence = [(number, *place) for number, key in enumerate(facts) for place in dict.fromkeys(places[key])]
    asked_about, sessions, turn_numbers = zip(*evidence) if evidence else ((), (), ())
    return tables.updated({
        "texts": texts,
        "questions": frame("questions", {"question": range(len(facts)), "corpus": [corpus for corpus, _ in facts],
                                         "text_id": ids}),
        "gold": frame("gold", {"question": range(len(facts)), "answer": [fact.answer for fact in facts.values()],
                               "category": [fact.kind for fact in facts.values()], "abstain": [False] * len(facts),
                               "scored": [True] * len(facts)}),
        "evidence": frame("evidence", {"question": asked_about, "session": sessions, "turn": turn_numbers})})


def make_examples(tables: Tables, pipeline: Pipeline, recipe: PairRecipe, store: Store) -> tuple[pl.DataFrame, Fold]:
    """Return the examples of a loaded data set, and its training and held-out questions.

    The pipeline's first stage gives the negatives; its later slots do not run. Raises MemlabError without any example.
    """
    if recipe.questions == "rules":
        tables = with_rule_questions(tables)
        if not tables["questions"].height:
            raise MemlabError("the rules find no statement to ask about", where="questions=rules",
                              fix="a larger log in English, or questions=gold")
    ranked = pipeline.run(tables, store, until=FIRST_STAGE).only(NEEDED)
    fold = split(ranked, recipe.fold)
    found = examples(ranked, fold, recipe.depth, recipe.roles, recipe.absolute_margin, recipe.relative_margin)
    kept = draw_examples(found, recipe.limit, recipe.seed)
    if not kept.height:
        raise MemlabError("no question has an evidence turn and another turn to tell it from",
                          where="learn/pairs", fix="data with turn-level evidence, a larger depth or a smaller margin")
    return kept, fold


def source_record(dataset: dict[str, Any], pipeline: Pipeline, recipe: PairRecipe, fold: Fold) -> dict[str, Any]:
    """Return what is to be known of examples: their data, the questions held out and learned, and the first stage."""
    return {"data": dataset, **{name: spec(getattr(recipe, name)) for name in OF_EXAMPLES},
            "held_out": fold.held_out["key"].to_list(),
            "learnt": sorted(set(fold.train["text_id"])),
            "first_stage": {slot: spec(stage) for slot, stage in pipeline.between(None, FIRST_STAGE)}}


@dataclass(frozen=True)
class MarkedQuestions:
    """Questions of a data set with evidence that a training does not learn; ``by`` says which are not independent."""

    tables: Tables
    questions: pl.Series
    by: GroupBy
    store: Store


def drop_learned(marked: MarkedQuestions, learned: frozenset[str]) -> MarkedQuestions:
    """Return the marked questions without those whose texts an earlier training learned."""
    new = marked.tables["questions"].filter(~pl.col("text_id").is_in(list(learned)))["question"]
    return replace(marked, questions=marked.questions.filter(marked.questions.is_in(new.implode())))


def data_examples(recipe: PairRecipe, words: list[str]) -> tuple[pl.DataFrame, dict[str, Any], MarkedQuestions]:
    """Return the examples of the data set that the words configure, what is to be known of them, and other questions.

    These are the held-out fold's, or, where rules make the questions, all that the data set has.
    """
    arm, store = read_arm(words)
    tables = load(arm.dataset)
    kept, fold = make_examples(tables, arm.pipeline, recipe, store)
    scored = tables["gold"].filter("scored")["question"]
    others = scored if recipe.questions == "rules" else scored.filter(
        scored.is_in(fold.held_out["question"].implode()))
    dataset = {"name": arm.dataset.name, **arm.dataset.identity()}
    return kept, source_record(dataset, arm.pipeline, recipe, fold), MarkedQuestions(
        tables, others, arm.dataset.grouping(), store)


def read_sources(recipe: TrainingRecipe, words: list[str]
                 ) -> tuple[pl.DataFrame, list[dict[str, Any]], MarkedQuestions | None]:
    """Return the examples of the recipe's files or of the data set of the words, and what is known of each source.

    The questions of the data set that are not learned come third; files have none.
    """
    if not recipe.pairs:
        kept, record, marked = data_examples(recipe, words)
        return kept, [record], marked
    settings = [f"{name}=" for name in OF_EXAMPLES if getattr(recipe, name) != getattr(PairRecipe(), name)]
    if others := [*settings, *(word for word in words if not word.startswith("seed="))]:
        raise MemlabError(f"{others[0]} configures examples, and these come from files", fix="leave one of them out")
    frames, records = [], []
    for file, times in recipe.pairs.items():
        read, record = read_examples(file)
        taken = times_over(read, times, recipe.seed)
        frames.append(taken)
        records.append({**record, "file": file.name, "times": times,
                        "learnt": sorted(text_hash(query) for query in taken["query"].unique())})
    return pl.concat(frames), records, None


def times_over(examples: pl.DataFrame, times: float, seed: int) -> pl.DataFrame:
    """Return the examples so many times; of a part of a time a sample, drawn by seed: at least one example in all.

    >>> times_over(pl.DataFrame({"query": ["a", "b", "c", "d"]}), 1.5, seed=0).height
    6
    """
    whole = int(times)
    part = max(round((times - whole) * examples.height), 0 if whole else 1)
    return pl.concat([*[examples] * whole, draw_examples(examples, part, seed)])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return train_command(PairRecipe, __doc__ or "", _write, argv)


@enough_memory(OF_A_RUN)
def _write(recipe: PairRecipe, words: list[str]) -> str:
    """Write the examples of the data that the words configure, and return a line about them."""
    if recipe.file is None:
        raise MemlabError("no file for the examples is given", fix="file=FILE.jsonl")
    kept, record, _ = data_examples(recipe, words)
    write_examples(recipe.file, kept, record)
    return (f"{recipe.file}: {kept.height:,} evidence turns of {kept['query'].n_unique():,} questions, "
            f"{len(record['held_out']):,} questions held out")
