"""The recall-token curve of an adaptive arm's rule, beside constant K and the best constant K by class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import polars as pl

from memlab.evaluate.curves import BY_CLASS, CONSTANT, RULE, class_points, constant_rankings, rule_points
from memlab.evaluate.evidence_ranks import scored_evidence
from memlab.question_types import first_of
from memlab.stage import Stage
from memlab.store import Store
from memlab.tables import Tables


@runtime_checkable
class OneKnob(Protocol):
    """A selection rule with one knob, whose settings draw its curve."""

    def variations(self) -> Iterator[Stage]:
        """Yield the rule at other settings of its knob."""


def rule_curve(select: Stage, tables: Tables, group_of: dict[int, int], store: Store) -> pl.DataFrame | None:
    """Return (rule, question, point, tokens, values) of the rule and of constant K; None for a rule without a knob.

    ``tables`` are those after the selection; ``group_of`` has the group of independent questions of each question.
    """
    ranking = tables["ranking"]
    if not isinstance(select, OneKnob) or not ranking.height or scored_evidence(tables).is_empty():
        return None
    constant = rule_points(constant_rankings(ranking), tables)
    curves = {RULE: rule_points((rule.run(tables, store)["ranking"] for rule in select.variations()), tables),
              CONSTANT: constant, BY_CLASS: class_points(constant, first_of(tables["classes"]), group_of)}
    return pl.concat([rows.select(pl.lit(name).alias("rule"), pl.all()) for name, rows in curves.items()])
