"""A contrast in one plain English sentence."""

from __future__ import annotations

from typing import Any

from memlab.evaluate.averages import COSTS


def sentence(row: dict[str, Any], alpha: float) -> str:
    """Say what a contrast's row of comparison.json found, and whether it is shown.

    ``alpha`` is the level that the most demanding step of Holm's correction asks for.
    """
    arm, other = row["arm"], _other(row)
    if row["verdict"] == "no arm":
        return f"{arm} cannot be compared: it has no finished run."
    if row["verdict"] == "no comparator":
        return f"{arm} cannot be compared: {other} has no finished run."
    if row["verdict"] == "changed nothing":
        return f"{arm} changed nothing: its ranking, selection and context are those of {other}."
    if row["verdict"] == "undefined":
        return f"{arm} cannot be compared with {other}: no question has {row['metric']} in both."
    facts = [f"{row['metric']}, {_count(row['n'], 'question')}"]
    if row["low"] is not None:
        facts.append(f"95 % interval {_bound(row, row['low'])} to {_bound(row, row['high'])}")
    facts.append(f"{_count(row['wins'], 'win')}, {_count(row['losses'], 'loss', 'losses')}")
    if row["clusters"] is not None:
        facts.append(agreement(row))
    adjusted = row["p_adjusted"]
    facts.append(f"p {_p(adjusted)} after Holm" if adjusted is not None else f"p {_p(row['p'])}, uncorrected")
    return f"{arm} {_finding(row)} {other} ({'; '.join(facts)}): {_ending(row, alpha)}"


def agreement(row: dict[str, Any]) -> str:
    """Say in how many conversations the difference has the sign that it has over all of them.

    >>> agreement({"difference": 120.0, "direction": "less", "agree": 1, "differing": 19, "clusters": 20})
    'greater in 18 of 20 conversations'
    """
    found = row["direction"] if row["difference"] == 0 else "greater" if row["difference"] > 0 else "less"
    alike = row["agree"] if found == row["direction"] else row["differing"] - row["agree"]
    return f"{found} in {alike} of {_count(row['clusters'], 'conversation')}"


def _other(row: dict[str, Any]) -> str:
    return "its token-matched twin" if row["comparator"] == f"{row['arm']}.twin" else str(row["comparator"])


def _finding(row: dict[str, Any]) -> str:
    size, up = _size(row, abs(row["difference"])), row["difference"] > 0
    last = row["metric"].rsplit("/", 1)[-1].split("@")[0].removesuffix("_mean")
    if row["difference"] == 0:
        return f"has the same {row['metric']} as"
    if last in ("recall_all", "recall_any"):
        found = "complete evidence" if last == "recall_all" else "some evidence"
        return f"finds {found} in {size} {'more' if up else 'fewer'} questions than"
    if last == "recall":
        return f"finds {size} {'more' if up else 'less'} of the evidence than"
    if last == "tokens":
        return f"shows {size} {'more' if up else 'fewer'} than"
    if last == "k":
        return f"selects {size} {'more' if up else 'fewer'} than"
    return f"scores {size} {'higher' if up else 'lower'} than"


def _unit(row: dict[str, Any]) -> str:
    name = row["metric"].removesuffix("_mean")
    if name not in COSTS and not name.endswith(tuple(f"/{cost}" for cost in COSTS)):
        return "points"
    return "tokens" if name.endswith("tokens") else "units"


def _size(row: dict[str, Any], value: float) -> str:
    return f"{value:,.1f} {_unit(row)}" if _unit(row) != "points" else f"{100 * value:.1f} points"


def _bound(row: dict[str, Any], value: float) -> str:
    shown = value if _unit(row) != "points" else 100 * value
    return f"{shown:+,.1f}".replace("-", "−") if round(shown, 1) else "0.0"


def _p(p: float) -> str:
    """Write a p-value.

    >>> _p(.1404), _p(.0312), _p(.0000004), _p(1.0)
    ('= .14', '= .031', '< .001', '= 1')
    """
    if p < 0.001:
        return "< .001"
    if p > 0.995:
        return "= 1"
    return "= " + (f"{p:.2f}" if p >= 0.1 else f"{p:.3f}").removeprefix("0")


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _ending(row: dict[str, Any], alpha: float) -> str:
    if row["verdict"] == "exploratory":
        return "exploratory, not tested for."
    if row["verdict"] == "shown":
        return "shown."
    if row["verdict"] == "opposite":
        return "the opposite of what was claimed is shown."
    if row["verdict"] == "out of reach":
        differ = "" if row["differing"] == row["clusters"] else f", of which {row['differing']} differ,"
        give = "gives" if row["clusters"] == 1 else "give"
        return (f"not shown, and out of reach: {_count(row['clusters'], 'conversation')}{differ} {give} no p below "
                f"{_p(row['smallest_p'])[2:]}, where {_p(alpha)[2:]} is asked for.")
    if row["power"] is None or row["planned"] is None:
        return "not shown."
    chance = f"{100 * row['power']:.0f} %" if row["power"] >= 0.01 else "less than 1 %"
    return (f"not shown; a true difference of {_size(row, row['planned'])}, the size planned for, had a chance of "
            f"{chance} to be found.")
