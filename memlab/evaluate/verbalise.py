"""A contrast, and the groups that it is tested over, each in one plain English sentence."""

from __future__ import annotations

import polars as pl

from memlab.evaluate.contrast import ContrastResult
from memlab.evaluate.curves import BY_CLASS, CONSTANT
from memlab.evaluate.summary import COSTS
from memlab.support.text.display import plural


def sentence(row: ContrastResult) -> str:
    """Return the finding of a contrast in one sentence, with its figures and whether it is shown."""
    arm, other = row["arm"], opponent(row)
    if row["verdict"] == "no arm":
        return f"{arm} cannot be compared: it has no finished run."
    if row["verdict"] == "no comparator":
        return f"{arm} cannot be compared: {other} has no finished run."
    if row["verdict"] == "changed nothing":
        return f"{arm} changed nothing: its ranking, selection and context are those of {other}."
    difference, p, adjusted = row["difference"], row["p"], row["p_adjusted"]
    if difference is None:
        return f"{arm} cannot be compared with {other}: no question has {row['metric']} in both."
    if p is None:
        return (f"{arm} {finding(row, difference)} {other}, but nothing can be tested: all {row['n']:,} questions "
                "belong to one group, which gives no measure of chance.")
    facts = [f"{row['metric']}, {plural(row['n'], 'question')}"]
    facts += interval(row)
    if row["wins"] is not None:
        facts.append(f"{plural(row['wins'] or 0, 'win')}, {plural(row['losses'] or 0, 'loss', 'losses')}")
    if row["tokens"] is not None:
        facts.append(f"mean over {row['tokens'][0]:,.0f} to {row['tokens'][1]:,.0f} tokens")
    if in_groups := agreement(row):
        facts.append(in_groups)
    facts.append(f"p {p_value(adjusted)}, corrected" if adjusted is not None
                 else f"p {p_value(p)}, uncorrected")
    return f"{arm} {finding(row, difference)} {other} ({'; '.join(facts)}): {_ending(row)}"


def agreement(row: ContrastResult) -> str:
    """Return in how many groups the difference has the sign of their mean; "" where each question is a group.

    >>> agreement({"difference": 120.0, "direction": "less", "agree": 1, "differing": 19, "groups": 20, "n": 100})
    'greater in 18 of 20 groups'
    """
    difference, agree, differing = row["difference"], row["agree"], row["differing"]
    if difference is None or agree is None or differing is None or row["groups"] == row["n"]:
        return ""
    sign = row["direction"] if difference == 0 else "greater" if difference > 0 else "less"
    same = agree if sign == row["direction"] else differing - agree
    return f"{sign} in {same} of {plural(row['groups'] or 0, 'group')}"


def opponent(row: ContrastResult) -> str:
    """Return what the arm is compared with, in words."""
    names = {f"{row['arm']}.twin": "its token-matched twin", CONSTANT: "constant K at equal tokens",
             BY_CLASS: "the best constant K of each class at equal tokens"}
    return names.get(row["comparator"], row["comparator"])


_FINDINGS = {
    "recall_all": ("finds all evidence {} {} often than", "more", "less"),
    "recall_any": ("finds some evidence {} {} often than", "more", "less"),
    "answer_words": ("shows {} {} of the answers' words than", "more", "less"),
    "recall": ("finds {} {} of the evidence than", "more", "less"),
    "tokens": ("shows {} {} than", "more", "fewer"), "k": ("selects {} {} than", "more", "fewer")}
"""Last part of a metric's name -> what a difference in it means, and the words for one above and below 0."""


def finding(row: ContrastResult, difference: float) -> str:
    """Return what an arm does better or worse than its comparator, up to the comparator's name."""
    measure = row["metric"].rsplit("/", 1)[-1].split("@")[0].removesuffix("_mean")
    if difference == 0:
        return f"has the same {row['metric']} as"
    phrase, above, below = _FINDINGS.get(measure, ("scores {} {} than", "higher", "lower"))
    return phrase.format(_size(row, abs(difference)), above if difference > 0 else below)


def _unit(row: ContrastResult) -> str:
    name = row["metric"].removesuffix("_mean")
    if name not in COSTS and not name.endswith(tuple(f"/{cost}" for cost in COSTS)):
        return "points"
    return "tokens" if name.endswith("tokens") else "units"


def _size(row: ContrastResult, value: float) -> str:
    return f"{value:,.1f} {_unit(row)}" if _unit(row) != "points" else f"{100 * value:.1f} points"


def interval(row: ContrastResult) -> list[str]:
    """Return the interval in words, its ends with their signs in the metric's unit; none where there is none."""
    scale = 1 if _unit(row) != "points" else 100
    ends = [f"{scale * value:+,.1f}".replace("-", "−") if round(scale * value, 1) else "0.0"
            for value in (row["low"], row["high"]) if value is not None]
    return [f"95 % interval {ends[0]} to {ends[1]}"] if len(ends) == 2 else []


def p_value(p: float) -> str:
    """Format a p-value.

    >>> p_value(.1404), p_value(.0312), p_value(.0000004), p_value(1.0)
    ('= .14', '= .031', '< .001', '= 1')
    """
    if p < 0.001:
        return "< .001"
    if p > 0.995:
        return "= 1"
    return "= " + (f"{p:.2f}" if p >= 0.1 else f"{p:.3f}").removeprefix("0")


_ENDINGS = {
    "exploratory": "exploratory, not tested for.", "shown": "shown.",
    "opposite": "the opposite of what was claimed is shown.",
    "likely": "likely: the interval excludes 0, but p does not pass the correction for several contrasts."}


def _ending(row: ContrastResult) -> str:
    if row["verdict"] in _ENDINGS:
        return _ENDINGS[row["verdict"]]
    if row["power"] is None or row["planned"] is None:
        return "open."
    power = f"{100 * row['power']:.0f} %" if row["power"] >= 0.01 else "less than 1 %"
    return (f"open; a true difference of {_size(row, row['planned'])}, the size planned for, had a chance of "
            f"{power} to be found.")


def grouping_in_words(questions: pl.DataFrame) -> str:
    """Return one sentence on the groups of a per-question frame: what is tested over, and for what the result holds."""
    groups, memories, n = questions["group"].n_unique(), questions["corpus"].n_unique(), questions.height
    if memories == 1:
        scope = "a result holds for further questions about this memory, not for other people's memories"
        if groups < 2:
            return f"All questions concern one memory and share evidence, so that nothing can be tested; {scope}."
        return (f"All questions concern one memory: effects are tested over {groups:,} groups of questions that share "
                f"evidence, and {scope}.")
    if groups == n:
        return f"Effects are tested over {n:,} questions that share no evidence; a result holds for further ones."
    if groups == memories and questions.select(pl.struct("group", "corpus").n_unique()).item() == memories:
        return (f"Questions of one conversation are not independent: effects are tested over {groups:,} conversations, "
                "and a result holds for further conversations like these.")
    return (f"Questions that share evidence are not independent: effects are tested over {groups:,} groups of them, "
            "and a result holds for further questions like these.")
