"""One self-contained HTML page on which a person marks the evidence of each question, and saves questions.jsonl."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files

from memlab.data.jsonl import SessionLine
from memlab.questions.pool import Candidate
from memlab.questions.propose import ProposedQuestion


def page(sessions: Sequence[SessionLine], questions: Sequence[ProposedQuestion], pools: Sequence[Sequence[Candidate]],
         depth: int) -> str:
    """Return the page; texts of the log are data in it, and never markup or code."""
    turns = {(s.corpus, s.session): s.turns for s in sessions}
    entries = [{"corpus": question.corpus, "text": question.text, "candidates": [
        {"session": c.session, "turn": c.turn, "text": turns[question.corpus, c.session][c.turn].text,
         "speaker": turns[question.corpus, c.session][c.turn].speaker or turns[question.corpus, c.session][c.turn].role}
        for c in pool]} for question, pool in zip(questions, pools)]
    digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:16]
    data = json.dumps({"digest": digest, "depth": depth, "questions": entries})  # ASCII: no line separator is left
    template = files("memlab.questions").joinpath("page.html").read_text("utf-8")
    return template.replace("__DATA__", data.replace("<", "\\u003c"))
