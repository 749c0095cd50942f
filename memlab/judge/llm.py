"""A chat model as judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from memlab.judge import reading
from memlab.judge.cases import NO_GOLD, READS, Case, Verdict, cases, verdicts
from memlab.judge.prompts import Style, judge_prompt
from memlab.models.chat import Chat, Completion
from memlab.stage import stage
from memlab.tables import Tables

if TYPE_CHECKING:
    from memlab.store import Store

_REFUSED = "(question, reference and response do not fit into the judge's window)"


@stage
class LlmJudge:
    """Ask a chat model whether each response is right.

    ``official`` follows LongMemEval: temperature 0, at most 10 tokens, right if the reply contains "yes", be it
    inside "yesterday"; a reply without it counts as wrong, whatever it says. ``strict`` wants every detail and
    ``lenient`` lets a partly right response pass; both read the first word, and where that is neither yes nor no
    the verdict is null. Whatever the style, it is null where the prompt did not fit into the judge's window, and
    where there is neither a gold answer nor a need to abstain.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    chat: Chat
    name: str = "official"
    style: Style = "official"
    sample: Annotated[int, Field(ge=0)] = 0

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return one verdict an answer; what the model judged before is not asked again."""
        judged = cases(tables, self.sample)
        asked = [case for case in judged if _has_reference(case)]
        replies = iter(store.completions(self.chat, [judge_prompt(case, self.style) for case in asked]))
        return verdicts(self.name, judged,
                        [self._read(next(replies)) if _has_reference(case) else NO_GOLD for case in judged])

    def _read(self, reply: Completion) -> Verdict:
        if reply.finish == "refused":
            return Verdict(None, None, _REFUSED)
        said = reading.official(reply.text) if self.style == "official" else reading.first_word(reply.text)
        return Verdict(None if said is None else float(said), said, reply.text)


def _has_reference(case: Case) -> bool:
    return case.abstain or case.gold is not None
