"""The opening of every report: what was asked and of which data, the verdict, how sure it is, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memlab.evaluate import verdict
from memlab.evaluate.compare import Comparison
from memlab.evaluate.contrast import ContrastResult
from memlab.evaluate.evidence import PREFIX
from memlab.evaluate.verbalise import finding, interval, opponent, p_value
from memlab.experiment.config.choices import all_choices
from memlab.experiment.config.comments import comment, first_sentence
from memlab.experiment.config.instantiate import CONF
from memlab.report import units
from memlab.support.text.display import plural

NAMED = 3
"""Rivals that are named with their differences."""

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Opening:
    """The opening of a report, as the terminal, HTML, Markdown and W&B show it.

    ``question`` is the experiment's question in words ("" if it has none), ``data`` the data and the number of
    questions. ``sentence`` is the verdict: at most 25 words and two figures. ``sure`` says how sure that is, what would
    settle an open verdict, and what to beware of. ``act`` has (label, text to copy). ``winner`` is the arm to mark,
    ``comparator`` the nearest arm that it was compared with; ``metric`` is the one that the verdict, the table's
    order, the charts and the list of questions use.
    """

    question: str
    data: str
    sentence: str
    sure: tuple[str, ...]
    act: tuple[tuple[str, str], ...]
    winner: str | None
    comparator: str | None
    metric: str | None


def opening(comparison: Comparison) -> Opening:
    """Return the opening of a comparison's report."""
    sentence, sure = _verdict(comparison)
    best, other = recommended_arm(comparison), None
    if best and comparison["arms"][best].get("fitted"):
        sentence = sentence.replace(f"Use {best}", f"Use {best} (fitted on labels)", 1)
    if best and (rules := _rules(comparison)):
        others = [rules.nearest["comparator"], f"{best}.twin", *(row["comparator"] for row in rules.rows)]
        other = next((name for name in others if name in comparison["arms"]), None)
    elif best and (found := comparison["verdict"]):
        other = found["ranking"][1]["arm"]
    sure += [*_about(best), *(note for note in comparison["notes"] if "demonstration, not evidence" in note)]
    return Opening(_purpose(f"exp/{comparison['experiment']}"), _data(comparison), sentence, tuple(sure),
                   tuple((label, text) for label, text in comparison["act"]), best, other, comparison["metric"])


def _rules(comparison: Comparison) -> verdict.RuleVerdict | None:
    """Return which rule wins among those that may be recommended."""
    barred = {name for name, arm in comparison["arms"].items() if arm["oracle"] or arm["tainted"]}
    return verdict.winner([row for row in comparison["contrasts"] if row["arm"] not in barred])


def recommended_arm(comparison: Comparison) -> str | None:
    """Return the arm that the verdict recommends; None if it recommends none."""
    if comparison["whole"]:
        return None
    if rules := _rules(comparison):
        return rules.arm if rules.wins else None
    found = comparison["verdict"]
    return found["ranking"][0]["arm"] if found and found["behind"] else None


def _verdict(comparison: Comparison) -> tuple[str, list[str]]:
    """Return the verdict in one sentence, and how sure it is."""
    found, rules, whole = comparison["verdict"], _rules(comparison), comparison["whole"]
    if whole:
        return (f"Everything fits: a memory ({whole['size']:,.0f} {whole['unit']}) is shown whole within "
                f"{whole['limit']:,}, so nothing was chosen and no winner can be named.",
                [f"Set {whole['setting']}={whole['advised']}, a quarter of a memory: then systems have to choose."])
    if rules:
        return _rules_words(rules, comparison)
    if found is None:
        return _alone(comparison)
    if len(comparison["constant_k"]) == 1 and _tokens(found["metric"]):
        return (f"No winner on {plural(found['questions'], 'question')}: the arms show more or less of one ranking, so "
                "at equal tokens they are the same.",
                ["More tokens find more; the picture and the table say what each number of units costs. A rule that "
                 "chooses it by question would be compared with them: rank/select=gap, marginal or another."])
    words = _tie(found) if found["behind"] is None else _preference(found, found["behind"])
    return words[0], [*words[1], *_cut(found),
                      *_shown_contrasts(found, comparison["contrasts"])]


def _preference(found: verdict.Recommendation, behind: verdict.Rival) -> tuple[str, list[str]]:
    best, tied = found["ranking"][0], found["tied"]
    rest, finds = len(found["ranking"]) - 1 - len(tied), _does(found["metric"], best["value"])
    equal = "at equal tokens " if _tokens(found["metric"]) else ""
    which = f"{_number(rest)} others; the nearest is " if rest > 1 else ""
    sure = f"Shown to be ahead of {which}{behind['arm']}: {_lead(behind)}."
    if not tied:
        return (f"Use {best['arm']}: {equal}it {finds}, {-100 * behind['difference']:.1f} points above "
                f"{behind['arm']}.", [sure])
    better = f"{equal}it is shown to be better than {_and_more(behind['arm'], rest - 1)}"
    return (f"Use {best['arm']}: {'; '.join([better, *_groups(best['arm'], tied)])}.",
            [f"It {finds}.", sure, *_tied_words(tied), *_ways_to_settle(found)])


def _groups(best: str, tied: Sequence[verdict.Rival]) -> list[str]:
    """Return who is level with the best, and of whom that is open.

    >>> rival = {"difference": 0, "low": None, "high": None}
    >>> _groups("best", [{**rival, "arm": "oltramem"}, {**rival, "arm": "plain", "difference": -.08}])
    ['best and oltramem are level', 'plain is open']
    """
    level, unsettled = (_and_more(some[0]["arm"], len(some) - 1) if some else "" for some in _by_level(tied))
    one = sum(not verdict.is_level(rival) for rival in tied) == 1
    return ([f"{best}{',' if ' and ' in level else ' and'} {level} are level"] if level else []) + (
        [f"{unsettled} {'is' if one else 'are'} open"] if unsettled else [])


def _and_more(name: str, more: int) -> str:
    """Return a name and the number of those that are not named.

    >>> _and_more("plain", 0), _and_more("plain", 1), _and_more("plain", 8)
    ('plain', 'plain and one other', 'plain and eight others')
    """
    return f"{name} and {_number(more)} other{'s' * (more > 1)}" if more else name


def _tie(found: verdict.Recommendation) -> tuple[str, list[str]]:
    """Return the verdict where the best arm is shown to be ahead of no other."""
    best, rivals, n = found["ranking"][0], found["tied"], plural(found["questions"], "question")
    leads = [] if any(map(verdict.is_level, rivals)) else [f"{best['arm']} leads"]
    words = "; ".join([*leads, *_groups(best["arm"], rivals)])
    if all(place["value"] == best["value"] for place in found["ranking"]):
        words += ", with the same value"
    return f"No winner on {n}: {words}.", [f"To copy: {best['arm']}; it {_does(found['metric'], best['value'])}.",
                                           *_tied_words(rivals), *_ways_to_settle(found)]


def _by_level(rivals: Sequence[verdict.Rival]) -> tuple[list[verdict.Rival], list[verdict.Rival]]:
    """Return the arms that are level with the best, and those of which this is open."""
    return [r for r in rivals if verdict.is_level(r)], [r for r in rivals if not verdict.is_level(r)]


def _tied_words(rivals: Sequence[verdict.Rival]) -> list[str]:
    """Return which of the arms that the best is not shown to be ahead of are level with it, and which are open."""
    level, unsettled = _by_level(rivals)
    return [f"{heading}: {_names(some)}." for heading, some in (
        (f"Level (the same value, or within {100 * verdict.MARGIN:.0f} points)", level),
        ("Open, since no difference is shown", unsettled)) if some]


def _names(rivals: Sequence[verdict.Rival]) -> str:
    more = f"; and {len(rivals) - NAMED} more" if len(rivals) > NAMED else ""
    return "; ".join(f"{rival['arm']} ({_lead(rival) if rival['difference'] else 'the same value'})"
                     for rival in rivals[:NAMED]) + more


def _cut(found: verdict.Recommendation) -> list[str]:
    """Return at how many tokens rankings are cut, and who leads at other budgets; nothing for other metrics."""
    if not (tokens := _tokens(found["metric"])):
        return []
    return [f"Equal tokens: each ranking is cut at {tokens:,} tokens for every question; the first unit that does not "
            "fit ends it. What an arm shows by its own choice is a column of the table.",
            *(f"Within {int(budget):,} tokens: {_leads(standing)}." for budget, standing in found["elsewhere"].items())]


def _leads(found: verdict.Standing) -> str:
    """Return who leads at another budget, and how surely."""
    best, behind, tied = found["ranking"][0], found["behind"], found["tied"]
    value = f"{best['arm']} {100 * best['value']:.1f} %"
    if behind and not tied:
        return f"{value}, {-100 * behind['difference']:.1f} points above {behind['arm']}"
    better = [f"better than {behind['arm']}"] if behind else []
    return "; ".join([value, *better, *_groups(best["arm"], tied)])


def _tokens(metric: str) -> int | None:
    """Return the tokens at which a metric cuts rankings; None for another metric.

    >>> _tokens("within_1000/turn/recall_all"), _tokens("turn/ndcg@10")
    (1000, None)
    """
    match = re.match(r"within_(\d+)/", metric)
    return int(match[1]) if match else None


def _shown_contrasts(found: verdict.Recommendation, contrasts: Sequence[ContrastResult]) -> list[str]:
    """Return which declared contrasts are shown between arms that the verdict leaves level or open."""
    together = {found["ranking"][0]["arm"], *(rival["arm"] for rival in found["tied"])}
    shown = [f"{row['arm']} {units.difference(row['metric'], row['difference'])} against {row['comparator']} in "
             f"{units.label(row['metric'])}" for row in contrasts
             if row["verdict"] in ("shown", "opposite") and {row["arm"], row["comparator"]} <= together]
    return [f"Yet shown by a contrast that was declared before the run: {'; '.join(shown)}. It asks about one pair and "
            "one metric; the verdict names the best of all afterwards, so it corrects over more."] if shown else []


def _ways_to_settle(found: verdict.Standing) -> list[str]:
    """Return what would tell the best arm from those of which it is open whether it is ahead."""
    hardest = sorted(_by_level(found["tied"])[1], key=lambda rival: rival["needed"] or 0)[-1:]
    return [_settle(found["groups"], found["questions"], one["needed"], one["difference"], one["arm"])
            for one in hardest or found["tied"][:found["groups"] < 2]]  # a single group leaves all open


def _settle(groups: int, n: int, more: int | None, seen: float, other: str) -> str:
    """Return what would settle an open verdict: how many more questions show the difference that was seen.

    >>> print(_settle(40, 40, 1312, .031, "plain"))
    What would settle it: about 1,300 more questions, if the true difference to plain is the 3.1 points seen here.
    """
    if groups < 2:  # noqa: PLR2004  (one group gives no measure of chance)
        return ("What would settle it: questions that share no evidence with these, or of other conversations; all of "
                "these belong to one group, which gives no measure of chance.")
    points = f"{abs(100 * seen):.1f} points"
    if not more:
        return f"More questions like these would hardly show a difference as small as that to {other}, {points}."
    kind = f", in {max(1, round(more * groups / n)):,} more conversations or groups" if groups < n else ""
    return (f"What would settle it: about {float(f'{more:.2g}'):,.0f} more questions{kind}, if the true difference to "
            f"{other} is the {points} seen here.")


def _rules_words(rules: verdict.RuleVerdict, comparison: Comparison) -> tuple[str, list[str]]:
    near = rules.nearest
    other, points = opponent(near).removesuffix(" at equal tokens"), 100 * (near["difference"] or 0.0)
    if rules.wins:
        sentence = f"Use {rules.arm}: at equal tokens it {finding(near, points / 100)} {other}."
    else:
        side = "above" if points > 0 else "below"
        place = f"{abs(points):.1f} points {side}" if round(abs(points), 1) else "level with"
        sentence = (f"No rule is shown to beat what it is compared with at equal tokens; the nearest is {rules.arm}, "
                    f"{place} {other}.")
    sure = [_margin(row) for row in rules.rows]
    if rules.also:
        sure.append(f"Also shown to beat what it is compared with: {', '.join(rules.also)}.")
    if not rules.wins:
        more = verdict.more_questions(near, .05 / max(len(comparison["contrasts"]), 1))
        sure.append(_settle(near["groups"] or 0, near["n"], more, near["difference"] or 0.0, other))
    return sentence, sure


def _margin(row: ContrastResult) -> str:
    facts = [units.difference(row["metric"], row["difference"]), *interval(row)]
    facts.append("nothing can be tested" if row["p_adjusted"] is None else f"p {p_value(row['p_adjusted'])}, corrected")
    return f"Against {opponent(row)}: {', '.join(facts)}{'' if row['verdict'] == 'shown' else ' (not shown)'}."


def _alone(comparison: Comparison) -> tuple[str, list[str]]:
    """Return a summary where there are no two arms to compare."""
    names = [name for name, arm in comparison["arms"].items()
             if not (arm["oracle"] or arm["tainted"] or name.endswith(".twin"))]
    metric = comparison["metric"]
    if not names:
        return "Only arms that look at gold are here, so no system can be recommended.", []
    if metric is None:
        return ("Nothing could be measured: no metric is defined for "
                f"{'all arms' if len(names) > 1 else 'these questions'}.", [])
    name, arm = names[0], comparison["arms"][names[0]]
    found = arm["metrics"][metric]
    sure = []
    if found["low"] is not None and found["high"] is not None:
        sure.append(f"95 % interval {100 * found['low']:.1f} to {100 * found['high']:.1f} %, from "
                    f"{plural(found['n'], 'question')}.")
    sure += [row["words"] for row in [*comparison["contrasts"], *comparison["exploratory"]]
             if row["comparator"] == f"{name}.twin" and row["metric"] == metric]
    shown = "" if arm["tokens_mean"] is None else f" at {arm['tokens_mean']:,.0f} tokens each"
    cut = f" within {tokens:,} tokens" if (tokens := _tokens(metric)) else shown
    return (f"{name} {_does(metric, found['value'])}{cut}.",
            [*sure, "One arm alone does not say whether another is better."])


def _does(metric: str, value: float) -> str:
    """Return what a value means.

    >>> _does("within_1000/turn/recall_all", .858), _does("answer/f1", .7)
    ('finds all evidence turns for 85.8 % of the questions', 'scores 70.0 % by the judge f1')
    """
    if match := re.fullmatch(r"(?:selected|within_\d+)/(turn|session)/recall_all", metric):
        return f"finds all evidence {match[1]}s for {100 * value:.1f} % of the questions"
    return f"scores {100 * value:.1f} % by {'the judge ' * metric.startswith(PREFIX)}{metric.removeprefix(PREFIX)}"


def _number(n: int) -> str:
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def _lead(rival: verdict.Rival) -> str:
    """Return by how much the best arm is ahead of a rival; p is corrected over all that it is compared with.

    >>> _lead({"arm": "a", "difference": -.15, "low": -.25, "high": -.05, "p": .004, "needed": 0})
    '+15.0 points, 95 % interval +5.0 to +25.0, p = .004, corrected'
    """
    low, high = (None if end is None else -end for end in (rival["high"], rival["low"]))
    ends = units.difference_interval("", low, high)
    return (f"{units.difference('', -rival['difference'])}{f', 95 % interval {ends}' if ends else ''}"
            + ("" if rival["p"] is None else f", p {p_value(rival['p'])}, corrected"))


def _data(comparison: Comparison) -> str:
    scored, questions, groups = comparison["scored"], comparison["questions"], comparison["groups"]
    counted = "" if scored == questions else f", {scored:,} of them count for retrieval"
    grouped = f", in {plural(groups, 'independent group')}" if groups < scored else ""
    return f"{comparison['data']}: {plural(questions, 'question')}{counted}{grouped}"


def _about(arm: str | None) -> list[str]:
    """Return what an arm with the name of a system or a technique is, in a sentence.

    >>> _about("gap")
    ['gap: Adaptive-k (Taguchi et al., EMNLP 2025): cut at the largest drop between consecutive scores.']
    >>> _about("my own arm")
    []
    """
    found = [name for name in all_choices(CONF) if name.rpartition("/")[2] == arm
             and not name.startswith(("arm/", "data/", "exp/"))]
    found = [name for name in found if name.startswith("system/")] or found
    return [f"{arm}: {text}" for text in map(_purpose, found) if text] if len(found) == 1 else []


def _purpose(choice: str) -> str:
    """Return the first sentence about an experiment, a system or a technique; "" where nothing is written.

    >>> _purpose("exp/adaptive_k")
    'Does choosing K by question beat one K for all, at the same mean context tokens?'
    """
    found = all_choices(CONF).get(choice)
    return first_sentence([line for line in comment(choice, found) if not line.startswith("@package")]) if found else ""
