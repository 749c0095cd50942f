"""Agreement of a run folder's figures with other evaluation tools, on its exported runs and qrels.

``python -m experiments.score_agreement.agreement RUN_FOLDER`` prints the table of docs/score.md. Tools that are not
installed are left out. Each tool reads the files itself and averages as it does.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from memlab.evaluate.retrieval import KS

FAMILIES = ("mrr", "mrr@10", *(f"{name}@{k}" for name in ("recall_any", "recall_all", "recall", "ndcg", "precision")
                               for k in KS))
SHOWN = ("mrr", "mrr@10", "recall_any@1", "recall_any@10", "recall_all@10", "recall@10", "ndcg@10", "precision@10")
Figures = dict[str, float]


def ir_measures(run: Path, qrels: Path) -> Figures:
    """Return the figures of ir_measures, by memlab's names; recall_all is the share of topics with R@k = 1."""
    import ir_measures as tool

    pair = (list(tool.read_trec_qrels(str(qrels))), list(tool.read_trec_run(str(run))))
    names = {"mrr": tool.RR, "mrr@10": tool.RR @ 10}
    for k in KS:
        names |= {f"recall_any@{k}": tool.Success @ k, f"recall@{k}": tool.R @ k, f"ndcg@{k}": tool.nDCG @ k,
                  f"precision@{k}": tool.P @ k}
    means = tool.calc_aggregate(list(names.values()), *pair)
    figures = {name: float(means[measure]) for name, measure in names.items()}
    for k in KS:
        figures[f"recall_all@{k}"] = share(row.value for row in tool.iter_calc([tool.R @ k], *pair))
    return figures


def pytrec_eval(run: Path, qrels: Path) -> Figures:
    """Return the figures of pytrec_eval (trec_eval); mrr@10 counts its recip_rank from 1/10, which has no cut."""
    import pytrec_eval as tool

    with run.open() as ranked, qrels.open() as judged:
        pair = tool.parse_run(ranked), tool.parse_qrel(judged)
    cuts = ",".join(map(str, KS))
    measures = {"recip_rank", *(f"{name}.{cuts}" for name in ("success", "recall", "ndcg_cut", "P"))}
    topics = tool.RelevanceEvaluator(pair[1], measures).evaluate(pair[0]).values()
    ranks = [topic["recip_rank"] for topic in topics]
    figures = {"mrr": mean(ranks), "mrr@10": mean(rank * (rank >= .1 - 1e-9) for rank in ranks)}
    for k in KS:
        for ours, theirs in (("recall_any", "success"), ("recall", "recall"), ("ndcg", "ndcg_cut"), ("precision", "P")):
            figures[f"{ours}@{k}"] = mean(topic[f"{theirs}_{k}"] for topic in topics)
        figures[f"recall_all@{k}"] = share(topic[f"recall_{k}"] for topic in topics)
    return figures


def ranx(run: Path, qrels: Path) -> Figures:
    """Return the figures of ranx; recall_all is the share of topics with recall@k = 1."""
    import ranx as tool

    pair = tool.Qrels.from_file(str(qrels), kind="trec"), tool.Run.from_file(str(run), kind="trec")
    names = {"mrr": "mrr", "mrr@10": "mrr@10"}
    for k in KS:
        names |= {f"recall_any@{k}": f"hit_rate@{k}", f"recall@{k}": f"recall@{k}", f"ndcg@{k}": f"ndcg@{k}",
                  f"precision@{k}": f"precision@{k}"}
    means = tool.evaluate(*pair, list(names.values()))
    figures = {ours: float(means[theirs]) for ours, theirs in names.items()}
    for k in KS:
        figures[f"recall_all@{k}"] = share(tool.evaluate(*pair, f"recall@{k}", return_mean=False))
    return figures


def trectools(run: Path, qrels: Path) -> Figures:
    """Return the figures of trectools; recall_any and recall_all count topics with P@k > 0 and R@k = 1."""
    from trectools import TrecEval, TrecQrel, TrecRun

    ranked = TrecRun(str(run))
    tool, topics = TrecEval(ranked, TrecQrel(str(qrels))), len(ranked.topics())
    figures = {"mrr": tool.get_reciprocal_rank(depth=10**9), "mrr@10": tool.get_reciprocal_rank(depth=10)}
    for k in KS:
        found, whole = (measure(depth=k, per_query=True).iloc[:, 0]
                        for measure in (tool.get_precision, tool.get_recall))
        figures |= {f"recall@{k}": tool.get_recall(depth=k), f"ndcg@{k}": tool.get_ndcg(depth=k),
                    f"precision@{k}": tool.get_precision(depth=k), f"recall_any@{k}": float((found > 0).sum()) / topics,
                    f"recall_all@{k}": float((whole > 1 - 1e-9).sum()) / topics}
    return {name: float(value) for name, value in figures.items()}


TOOLS: dict[str, Callable[[Path, Path], Figures]] = {
    tool.__name__: tool for tool in (ir_measures, ranx, trectools, pytrec_eval)}


def mean(values: Iterable[float]) -> float:
    """Return the mean of some figures."""
    return float(np.mean(list(values)))


def share(recalls: Iterable[float]) -> float:
    """Return the share of the topics whose recall is 1."""
    return mean(value > 1 - 1e-9 for value in recalls)


def compare(folder: Path) -> dict[str, dict[str, Figures]]:
    """Return level -> tool -> figures for the pairs of files in a run folder; ``memlab`` is metrics.json."""
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    pairs = {"turn": ("run.trec", "qrels.trec"), "session": ("run.sessions.trec", "qrels.sessions.trec")}
    if not (folder / pairs["session"][0]).exists():  # the run ranks sessions
        pairs = {"session": pairs["turn"]}
    installed = [name for name in TOOLS if importlib.util.find_spec(name)]
    return {level: {"memlab": {name: metrics[f"{level}/{name}"] for name in FAMILIES},
                    **{name: TOOLS[name](folder / run, folder / qrels) for name in installed}}
            for level, (run, qrels) in pairs.items()}


def main() -> None:
    """Print the table of one run folder, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a run folder, such as runs/single/locomo/plain-1f2e3d4c5b")
    compared = compare(parser.parse_args().folder)
    tools = list(next(iter(compared.values())))
    print(f"| metric | {' | '.join(tools)} | largest difference at any k |\n|---|{'--:|' * (len(tools) + 1)}")
    for level, figures in compared.items():
        for name in SHOWN:
            kind = name if name.startswith("mrr") else name.partition("@")[0] + "@"
            largest = max(abs(figures[tool][one] - figures["memlab"][one]) for tool in tools for one in FAMILIES
                          if one == kind or (kind.endswith("@") and one.startswith(kind)))
            print(f"| {level}/{name} | {' | '.join(f'{figures[tool][name]:.6f}' for tool in tools)} | {largest:.0e} |")


if __name__ == "__main__":
    main()
