"""An evaluation script of the shape of LongMemEval's, in words of our own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from memlab.data import benchmarks

SCRIPT = '''import os
import sys
from openai import OpenAI

raise SystemExit("memlab must not run this script")


def get_anscheck_prompt(task, question, answer, response, abstention=False):
    if not abstention:
        if task in ['single-session-user', 'single-session-assistant', 'multi-session']:
            template = "Plain.\\n\\nQ: {}\\n\\nA: {}\\n\\nR: {}\\n\\nFine?"
            prompt = template.format(question, answer, response)
        elif task == 'temporal-reasoning':
            template = "Dates. {} | {} | {}"
            prompt = template.format(question, answer, response)
        elif task == 'knowledge-update':
            template = "Newest " + "value. {} | {} | {}"
            prompt = template.format(question, answer, response)
        elif task == 'single-session-preference':
            template = "Taste. {} | rubric {} | {} {{sic}}"
            prompt = template.format(question, answer, response)
        else:
            raise NotImplementedError
    else:
        template = "Unknown. {0} | why {1} | {2}"
        prompt = template.format(question, answer, response)
    return prompt


if __name__ == '__main__':
    print(sys.argv)
'''


def put(home: Path, monkeypatch: pytest.MonkeyPatch, text: str = SCRIPT) -> Path:
    """Write the script where fetch would put it, and make its checksum the official one."""
    path = home / "data" / "evaluate_qa.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    fields = {**vars(benchmarks.FILES["longmemeval_judge"]), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    monkeypatch.setitem(benchmarks.FILES, "longmemeval_judge", benchmarks.OfficialFile(**fields))
    return path
