"""Made-up finished run folders: six arms over sixty questions about one small life, ranked by noisy signals.

Every figure in them is computed from the rankings that they hold, so that tests can recompute it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.sealing import seal

FACTS = [
    ("Which instrument did I take up in spring?", "the cello", "single-session-user",
     "I finally started cello lessons, my teacher says the bow hold is the hard part."),
    ("How many marathons have I run since I moved?", "3", "multi-session",
     "Crossed the line in Rotterdam this morning, my legs are gone but I am happy."),
    ("When did I adopt the cat?", "two weeks after the move", "temporal-reasoning",
     "We brought Miso home from the shelter yesterday, she is already asleep on the piano."),
    ("Where do I keep the spare key now?", "at Ana's place", "knowledge-update",
     "I moved the spare key again, Ana has it now because the neighbours are leaving."),
    ("Could you suggest a dinner for tonight?", "something vegetarian without coriander",
     "single-session-preference", "Remind me that coriander tastes like soap to me, and I stopped eating meat."),
    ("What did you recommend for the cracked phone screen?", "the repair stand in the market hall",
     "single-session-assistant", "Since the glass alone is broken, the stand in the market hall is the cheapest fix."),
]
FILLER = [
    "Could you rewrite this email so that it sounds a little less formal?", "What is the boiling point of ethanol?",
    "Here are five ideas for a birthday card, each with a short rhyme.", "The train was late again, so I read.",
    "Let us compare the two health plans: the first has a lower deductible, the second covers physiotherapy.",
    "My flatmate keeps leaving the window open and the heating bill shows it.",
]
HOSTILE = ("</script><script>window.broken = 1</script> <img src=x onerror='window.broken = 1'> \x1b[31mred\x1b[0m "
           "\u202eesrever\u202c a|b \u2028 null\x00 & שלום עולם")
COMMAND = "memlab run +exp=adaptive_k <b>"

ARMS = {"fixed_10": "fixed k = 10", "fixed_5": "fixed k = 5", "gap": "largest gap", "by_type": "by question class",
        "calibrated": "coverage >= .9", "oracle": "smallest complete K"}
CONTRASTS = (("gap", "fixed_10", "selected/session/recall_all"),
             ("by_type", "fixed_5", "selected/session/recall_all"))
UNITS = 30
LEARNED = ("gap", "by_type")
"""Arms that show importances as learned fusion leaves them."""

FEATURES = ("z dense", "z lexical", "<img src=x onerror='window.broken = 2'> a|b \u202e")


def make_runs(folder: Path, questions: int = 60, seed: int = 7, arms: tuple[str, ...] = tuple(ARMS),
              hostile: bool = True) -> Path:
    """Write one finished run folder an arm under folder (``runs/<exp>/<data>``) and return it."""
    rng = np.random.default_rng(seed)
    base = _questions(questions, rng, hostile)
    for arm in arms:
        _arm(folder, arm, base)
    return folder


def _questions(n: int, rng: np.random.Generator, hostile: bool) -> list[dict[str, Any]]:
    out = []
    for q in range(n):
        text, answer, kind, evidence = FACTS[q % len(FACTS)]
        gold = np.zeros(UNITS, bool)
        gold[rng.choice(UNITS, 1 + (rng.poisson(1.6) if kind == "multi-session" else rng.integers(0, 2)), False)] = True
        dense = np.clip(rng.normal(0.25, 0.12, UNITS) + 0.18 * gold, -1, 1)
        lexical = np.clip(rng.gamma(2.0, 2.0, UNITS) + 2.6 * gold, 0, None)
        score = (dense - dense.mean()) / dense.std() + (lexical - lexical.mean()) / lexical.std()
        order = np.argsort(-score, kind="stable")
        texts = [evidence if g else FILLER[(q + u) % len(FILLER)] for u, g in enumerate(gold)]
        if hostile and q == 3:
            text, texts[int(order[0])] = f"{text} {HOSTILE}", HOSTILE
        out.append({"question": q, "corpus": q // 6, "text": text, "answer": answer, "category": kind, "gold": gold,
                    "dense": dense, "lexical": lexical, "score": score, "order": order, "texts": texts,
                    "tokens": rng.integers(30, 260, UNITS), "abstain": q % 20 == 19,
                    "label_error": "the answer names a wrong month" if q == 8 else None})
    return out


def _cut(arm: str, q: dict[str, Any], coverage: np.ndarray) -> int:
    ranked = q["score"][q["order"]]
    if arm == "gap":
        return int(np.argmax(ranked[1:16] - ranked[2:17])) + 3
    if arm == "by_type":
        return 20 if q["category"] == "multi-session" else 7
    if arm == "calibrated":
        reached = np.flatnonzero(coverage >= 0.9)
        return int(reached[0]) + 1 if len(reached) else 20
    if arm == "oracle":
        return int(np.flatnonzero(q["gold"][q["order"]])[-1]) + 1
    return {"fixed_10": 10, "fixed_5": 5}[arm]


def _arm(folder: Path, arm: str, questions: list[dict[str, Any]]) -> None:
    ranking, shown, rows, bins = [], [], [], []
    for q in questions:
        order, gold = q["order"], q["gold"][q["order"]]
        share = np.cumsum(gold) / gold.sum()
        coverage = 1 - np.exp(-np.arange(1, UNITS + 1) / 5.0)
        k = _cut(arm, q, coverage)
        bins += [(coverage[i], float(share[i] == 1)) for i in range(UNITS)]
        tokens = q["tokens"][order]
        for i, unit in enumerate(order):
            ranking.append({"question": q["question"], "unit": int(unit), "level": "session", "session": int(unit),
                            "turns": [0, 1], "dense:turn": float(q["dense"][unit]),
                            "lexical:session": float(q["lexical"][unit]),
                            **({"coverage": float(coverage[i])} if arm == "calibrated" else {}),
                            "tokens": float(tokens[i]), "score": float(q["score"][unit]), "rank": i + 1,
                            "selected": i < k})
            if i < 20:
                shown.append({"question": q["question"], "rank": i + 1, "unit": int(unit), "session": int(unit),
                              "turns": [0, 1], "said_on": datetime(2023, 5, 1) + timedelta(days=int(unit)),
                              "text": q["texts"][int(unit)], "gold": bool(gold[i]), "selected": i < k})
        scored = not q["abstain"]
        values = {"session/recall_any@1": float(gold[0]), "session/recall_any@5": float(gold[:5].any()),
                  "session/recall_all@5": float(share[4] == 1), "session/recall_all@10": float(share[9] == 1),
                  "session/recall@10": float(share[9]), "selected/session/recall_all": float(share[k - 1] == 1),
                  "selected/k": float(k), "context/tokens": float(tokens[:k].sum())}
        rows.append({"question": q["question"], "corpus": q["corpus"], "group": q["question"],
                     **{c: q[c] for c in ("text", "answer", "category", "abstain")},
                     "scored": scored, "label_error": q["label_error"],
                     **{name: value if scored else None for name, value in values.items()}})
    _write(folder / f"{arm}-{hash_of(arm):08x}", arm, ranking, shown, rows, bins, curve_of(questions))


def curve_of(questions: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Complete evidence at every constant K of the one ranking that all arms share, over scored questions."""
    scored = [q for q in questions if not q["abstain"]]
    return [{"k": k, "tokens": float(np.mean([q["tokens"][q["order"]][:k].sum() for q in questions])),
             "value": float(np.mean([q["gold"][q["order"]][:k].sum() == q["gold"].sum() for q in scored]))}
            for k in range(1, UNITS + 1)]


def hash_of(name: str) -> int:
    """A digest of a name that is the same in every process."""
    return sum((i + 1) * ord(c) * 7919 for i, c in enumerate(name))


def _write(path: Path, arm: str, ranking: list[dict[str, Any]], shown: list[dict[str, Any]],
           rows: list[dict[str, Any]], bins: list[tuple[float, float]], curve: list[dict[str, float]]) -> None:
    path.mkdir(parents=True)
    table = pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"label_error": pl.String})
    int32 = pl.col("question", "rank").cast(pl.Int32)
    pl.DataFrame(ranking).with_columns(int32).write_parquet(path / "ranking.parquet")
    pl.DataFrame(shown).with_columns(int32).write_parquet(path / "shown.parquet")
    table.with_columns(pl.col("question").cast(pl.Int32)).write_parquet(path / "questions.parquet")
    pl.DataFrame([{"question": r["question"], "position": r["rank"], "unit": r["unit"],
                   "text_id": f"{r['unit']:032x}", "tokens": int(r["tokens"])} for r in ranking if r["selected"]],
                 ).write_parquet(path / "context.parquet")
    pl.DataFrame(schema={"question": pl.Int32, "class": pl.String}).write_parquet(path / "classes.parquet")
    (path / "metrics.json").write_text(json.dumps(means(table)))
    target = "memlab.stages.oracle.upper_bounds.Complete" if arm == "oracle" else f"memlab.stages.rank.select.{arm}"
    declared = "".join(f"- {{arm: {one}, comparator: {other}, metric: {metric}}}\n" for one, other, metric in CONTRASTS)
    (path / "config.yaml").write_text(f"# {ARMS[arm]}\nrank:\n  select:\n    _target_: {target}\n"
                                      f"contrasts:\n{declared}")
    manifest = {"arm": arm, "experiment": "adaptive_k", "command": COMMAND, "data": {"name": "synthetic", "seed": 0},
                "digest": path.name.rpartition("-")[2], "dataset": "synthetic",
                "finished": "2026-11-21T22:10:00", "commit": "3f1c2ab", "dirty": False, "seeds": [0],
                "total_seconds": 3.2 + len(arm) / 10, "questions": len(rows), "pipeline": {},
                "source": "5a",
                "looks_at_gold": ["select"] * (arm == "oracle"),
                "tokens": "words and punctuation marks", "tainted": False, "told": {}, "reliability": [],
                "importances": [], "costs": {}, "replies": {}, "haystack": {},
                "notes": ["Demonstration: the rules and the data are both ours."], "oracle": arm == "oracle",
                "versions": {"python": "3.11.7", "torch": "2.13.0", "polars": "2.1.0"},
                "hardware": {"cpu": "2 cores, AVX2", "memory_gb": 24.0, "gpu": None},
                "seconds": {"dense": 1.91, "select": 0.02}, "truncated": {"turn": 0.034},
                "constant_k": {"selected/session/recall_all": curve}}
    if arm == "calibrated":
        edges = np.linspace(0.0, 1.0, 6)
        place = np.digitize([p for p, _ in bins], edges[1:-1])
        manifest["reliability"] = [
            {"estimated": float(np.mean([bins[i][0] for i in at])),
             "observed": float(np.mean([bins[i][1] for i in at])), "n": len(at)}
            for at in (np.flatnonzero(place == b) for b in range(5)) if len(at)]
    if arm in LEARNED:
        manifest["importances"] = [{"feature": name, "gain": gain, "share": gain / 20}
                                   for name, gain in zip(FEATURES, (10.0, 5.0, 1.0))]
    seal(path, **manifest)


def means(table: pl.DataFrame) -> dict[str, float]:
    """The means of per-question metrics, over all scored questions and by type, named as in metrics.json."""
    scored = table.filter("scored")
    names = {"selected/k": "selected/k_mean", "context/tokens": "context/tokens_mean"}
    metrics = [c for c in table.columns if "/" in c]
    out = {names.get(m, m): float(scored[m].mean()) for m in metrics}
    for (kind,), part in scored.group_by("category"):
        out |= {f"type={kind}/{names.get(m, m)}": float(part[m].mean()) for m in metrics}
    return out
