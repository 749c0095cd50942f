"""Turn metrics as other benchmarks print them: over questions, and nDCG@10 over types and over conversations too."""

from __future__ import annotations

from memlab.evaluate.compare import Comparison
from memlab.text.display import format_number

COLUMNS = {
    "nDCG@10": "turn/ndcg@10",
    "nDCG@10, mean of types": "macro/type/turn/ndcg@10",
    "nDCG@10, mean of conversations": "macro/corpus/turn/ndcg@10",
    "recall@10": "turn/recall@10",
    "MRR@10": "turn/mrr@10",
    "hit@1": "turn/recall_any@1",
}
"""Heading -> name in metrics.json."""

LEGEND = ("nDCG@10, recall@10 (the share of the evidence), MRR@10 and hit@1 are means over questions (micro). The rows "
          "of MTEB's LMEB are means of question types (macro). Arms that rank units of different sizes cannot be "
          "compared here.")


def turn_metrics(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Return (arm, a cell for each of ``COLUMNS``) for the arms that rank turns; a missing figure is a dash."""
    ranks_turns = [(name, arm["metrics"]) for name, arm in comparison["arms"].items()
                   if COLUMNS["nDCG@10"] in arm["metrics"]]
    return [(name, [format_number(metrics[metric]["value"] if metric in metrics else None)
                    for metric in COLUMNS.values()]) for name, metrics in ranks_turns]
