"""Causes by intervention: readers and judges that obey a rule, so that the cause is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from memlab.evaluate.attribution import BEYOND, CROWDED, JUDGE, MISLED, MISREAD, NOISE, STEADY, UNDECLINED, Attribution
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Notes, Tables, frame, text_hash, texts_frame
from memlab.store import Store

GOLD_UNIT = 0


@dataclass(frozen=True)
class Rule:
    """Right if the context (question's units in order) and the sample satisfy the rule of that question."""

    rules: dict

    def ask(self, tables: Tables, store: Store, sample: int = 0) -> Tables:
        shown = {q: [] for q in tables["questions"]["question"]}
        for q, unit in tables["context"].sort("question", "position").select("question", "unit").iter_rows():
            if q in shown:
                shown[q].append(unit)
        notes = Notes()
        notes.add(len(shown), 10, "contexts were read")
        said = {q: "right" if self.rules[q](units, sample) else "wrong" for q, units in shown.items()}
        return Tables(answers=frame("answers", {"question": list(said), "sample": [sample] * len(said),
                                                "text_id": [text_hash(t) for t in said.values()]}),
                      texts=pl.concat([tables["texts"], texts_frame(["right", "wrong"])]).unique("text_id"),
                      notes=notes.table())


@stage
class Says:
    """Judges an answer right if it says so, or always as ``always`` says."""

    reads: ClassVar = ("answers", "texts")
    writes: ClassVar = ("verdicts",)
    always: bool | None = None

    def run(self, tables: Tables, store: Store) -> Tables:
        said = tables["answers"].join(tables["texts"], on="text_id")
        notes = Notes()
        notes.add(1, 10, "verdicts were given")
        right = [t == "right" if self.always is None else self.always for t in said["text"]]
        return Tables(verdicts=frame("verdicts", {"question": said["question"], "judge": ["says"] * said.height,
                                                  "score": [float(r) for r in right], "correct": right}),
                      notes=notes.table())


@stage
class Pack:
    """A context of these units."""

    reads: ClassVar = ("questions", "context")
    writes: ClassVar = ("context",)
    units: tuple[int, ...] = ()
    keep: bool = False

    def run(self, tables: Tables, store: Store) -> Tables:
        rows = []
        for q in tables["questions"]["question"]:
            kept = tables["context"].filter(pl.col("question") == q)["unit"].to_list() if self.keep else []
            rows += [(q, i, u) for i, u in enumerate(dict.fromkeys([*self.units, *kept]), start=1)]
        return Tables(context=frame("context", {
            "question": [r[0] for r in rows], "position": [r[1] for r in rows], "unit": [r[2] for r in rows],
            "text_id": [text_hash("hello")] * len(rows), "tokens": [1] * len(rows)}))


def attributed(make_world, rules: dict, *, second: bool | None = None, abstain: tuple[int, ...] = (),
               shown: bool = True, **settings) -> Tables:
    """Attribute answers on questions whose evidence is turn 0, ranked second, with two units shown (or one)."""
    made = make_world({0: [["user"] * 4]}, {q: [(0, 0)] for q in rules}, {q: [1, GOLD_UNIT, 2] for q in rules},
                      selected=2 if shown else 1, abstain=abstain)
    memories = frame("memories", {"memory": [0, 1, 2, 3], "corpus": [0] * 4, "session": [0] * 4,
                                  "turns": [[t] for t in range(4)]})
    made, reader, judge, store = made.updated({"memories": memories}), Rule(rules), Says(), Store()
    made = made.updated(reader.ask(made, store))
    made = made.updated(judge.run(made, store))
    asked = Attribution(reader=reader, judge=judge, second=Says(always=second), crowded=Pack(units=(0,), keep=True),
                        alone=Pack(units=(0,)), nothing=Pack(), **settings)
    return asked.run(made.only(asked.reads), store)


def causes(make_world, rules: dict, **settings) -> dict[int, str]:
    """The cause of each question, where evidence counts as shown only when all of it is."""
    found = attributed(make_world, rules, **settings)["attribution"].filter(view="all")
    return dict(found.select("question", "cause").iter_rows())


CASES = {
    NOISE: lambda units, sample: sample == 1,
    CROWDED: lambda units, sample: units[:1] == [GOLD_UNIT],
    MISREAD: lambda units, sample: units == [GOLD_UNIT],
    BEYOND: lambda units, sample: False,
}


def test_the_first_intervention_that_turns_the_verdict_is_the_cause(make_world) -> None:
    rules = dict(enumerate(CASES.values()))
    found = attributed(make_world, rules)["attribution"]
    assert {*found["view"]} == {"all", "any"}
    assert {*found["reached"]} == {"shown"}
    assert causes(make_world, rules) == dict(enumerate(CASES))
    # another judge comes before the tables, and after the same judge again
    assert causes(make_world, {0: CASES[BEYOND], 1: CASES[NOISE]}, second=True) == {0: JUDGE, 1: NOISE}
    assert causes(make_world, {0: CASES[CROWDED]}, shown=False) == {0: "cut by K"}
    # a question to decline is asked without any memory
    assert causes(make_world, {0: lambda units, sample: not units, 1: CASES[BEYOND]}, abstain=(0, 1),
                  shown=False) == {0: MISLED, 1: UNDECLINED}


def test_right_answers_are_tried_as_well_and_the_sample_is_drawn_once(make_world) -> None:
    rules = dict.fromkeys(range(6), CASES[BEYOND]) | {6: lambda units, sample: True,
                                                      7: lambda units, sample: sample == 0}
    found, again = (attributed(make_world, rules, wrong=2, right=2, seed=3)["attribution"] for _ in range(2))
    assert found.equals(again)
    every = found.filter(view="all")
    assert every.height == 8  # how far the evidence got is told for all
    assert every.group_by("right").agg(pl.col("sampled").sum()).sort("right")["sampled"].to_list() == [2, 2]
    assert dict(every.filter("right").select("question", "cause").iter_rows()) == {6: STEADY, 7: NOISE}
    assert every.filter(~pl.col("sampled"))["cause"].is_null().all()


def test_what_reader_and_judges_note_is_noted(make_world) -> None:
    made = attributed(make_world, {0: CASES[NOISE], 1: CASES[BEYOND]})
    assert made["notes"].group_by("what").agg(pl.col("number").sum()).sort("what").rows() == [
        ("contexts were read", 4 * 2), ("verdicts were given", 5)]
