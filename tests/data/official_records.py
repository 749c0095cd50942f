"""Small records in the official formats, one with every quirk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, records: object) -> Path:
    path.write_text(json.dumps(records))
    return path


def conversation() -> dict[str, Any]:
    def turn(dia: str, speaker: str, text: str, **more: Any) -> dict[str, Any]:
        return {"dia_id": dia, "speaker": speaker, "text": text, **more}

    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bob",
            "session_3_date_time": "10:00 am on 1 June, 2023",
            "session_3": [turn("D3:1", "Ann", "Bye")],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [turn("D1:1", "Ann", "Hello Bob"), turn("D1:2", "Bob", "Hi", blip_caption="a red bike ",
                                                                   query="bike store catalogue", img_url=["u"])],
            # numbered after session_3, said before it
            "session_10_date_time": "12:05 am on 9 May, 2023",
            "session_10": [turn("D10:1", "Ann", ""), turn("D10:2", "Bob", "", blip_caption="a lake")],
            "session_4_date_time": "10:00 am on 2 June, 2023",  # a date without a session
        },
        "qa": [
            {"question": "q0", "answer": 2022, "evidence": ["D1:2", "D1:2"], "category": 2},
            {"question": "q1", "answer": "Yes; because", "evidence": ["D1:1; D10:02"], "category": 3},
            {"question": "q2", "answer": "a; b", "evidence": ["D:3:01"], "category": 1},
            {"question": "q3", "answer": "x", "evidence": ["D9:9", "D"], "category": 4},
            {"question": "q4", "adversarial_answer": "wrong", "evidence": ["D3:1"], "category": 5},
            {"question": "q5", "answer": "both", "adversarial_answer": "wrong", "evidence": [], "category": 5},
            {"question": "q0", "answer": "again", "evidence": ["D1:1", "D7:1"], "category": 4},
        ],
    }


def turn(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def record(name: str = "q1", **changes: Any) -> dict[str, Any]:
    """Four slots in the order of days, not minutes; the session f1 twice, a session id of evidence without a mark."""
    return {
        "question_id": name, "question_type": "multi-session", "question": "How many?", "answer": 3,
        "question_date": "2023/05/30 (Tue) 08:00",
        "answer_session_ids": ["answer_1", "answer_2"],
        "haystack_dates": ["2023/05/20 (Sat) 23:10", "2023/05/20 (Sat) 02:21", "2023/05/20 (Sat) 02:21",
                           "2023/05/30 (Tue) 22:00"],
        "haystack_session_ids": ["f1", "answer_1", "answer_2", "f1"],
        "haystack_sessions": [
            [turn("assistant", "Welcome"), turn("user", "  ")],
            [turn("user", "I bought one", has_answer=False), turn("assistant", "Two then", has_answer=True),
             turn("user", "Yes, two", has_answer=True)],
            [turn("user", "Later"), turn("user", "again")],
            [turn("assistant", "Welcome"), turn("user", "  ")],
        ],
        **changes,
    }
