"""The opening of every report: what was asked and of which data, the verdict, how sure it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from memlab.evaluate.compare import Comparison
from memlab.evaluate.verdict import winner, winning_arm


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
    found, arm = comparison["verdict"], winning_arm(comparison["contrasts"])
    first = winner(comparison["contrasts"])
    sentences = [first] if first else list(found["words"]) if found else []
    places = found["ranking"] if found else []
    return Opening("", f"{comparison['data']}: {comparison['questions']:,} questions", "".join(sentences[:1]),
                   tuple(sentences[1:]), (), arm or (places[0]["arm"] if places else None),
                   places[1]["arm"] if len(places) > 1 else None, found["metric"] if found else None)
