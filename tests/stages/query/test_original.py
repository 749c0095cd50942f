from __future__ import annotations

from datetime import datetime

from memlab.pipeline.tables import Tables, frame
from memlab.stages.query.original import Original
from memlab.store import Store


def test_every_question_is_its_own_query():
    asked = frame("questions", {"question": [0, 7], "corpus": [0, 1], "text_id": ["h1", "h2"],
                                "asked_on": [datetime(2023, 1, 1), None]})
    queries = Original().run(Tables(questions=asked), Store())["queries"]
    assert queries.rows() == [(0, 0, "original", "h1", 1.0, None), (7, 7, "original", "h2", 1.0, None)]
