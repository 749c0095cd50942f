"""LongMemEval with short haystacks: each question keeps the sessions of its evidence and eight others, drawn by name.

    python experiments/encoder_training/short.py longmemeval_s.json short.json
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

OTHERS = 8
PARTS = ("haystack_session_ids", "haystack_dates", "haystack_sessions")


def main() -> None:
    """Write the questions of a file with short haystacks to another."""
    questions = json.loads(Path(sys.argv[1]).read_text())
    for question in questions:
        names = question["haystack_session_ids"]
        others = [place for place, name in enumerate(names) if name not in question["answer_session_ids"]]
        chosen = random.Random(question["question_id"]).sample(others, min(OTHERS, len(others)))
        places = sorted({*range(len(names))} - {*others} | {*chosen})
        for part in PARTS:
            question[part] = [question[part][place] for place in places]
    Path(sys.argv[2]).write_text(json.dumps(questions))


if __name__ == "__main__":
    main()
