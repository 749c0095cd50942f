"""A generated world in which the z-score of a unit tells its chance to be evidence."""

from __future__ import annotations

import numpy as np

from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame

UNITS = 15


def world(seed: int = 0, questions: int = 80) -> Tables:
    """One corpus with three sessions of five turns per question; evidence is drawn with logit 2 x z-score - 3."""
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.normal(size=(questions, UNITS)), axis=1)[:, ::-1]
    scores = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    held = rng.uniform(size=scores.shape) < 1 / (1 + np.exp(3 - 2 * scores))
    q, rank = np.divmod(np.arange(questions * UNITS), UNITS)
    place = np.concatenate([rng.permutation(UNITS) for _ in range(questions)])  # of the unit in its corpus
    session, turn = np.divmod(place, 5)
    unit = q * UNITS + place
    texts = texts_frame(["Who is Ann?", *(f"turn {i} of the talk" for i in range(questions * UNITS))])
    whole = np.arange(questions * UNITS)
    return Tables(
        texts=texts,
        questions=frame("questions", {"question": range(questions), "corpus": range(questions),
                                      "text_id": [text_hash("Who is Ann?")] * questions}),
        turns=frame("turns", {"corpus": whole // UNITS, "session": whole % UNITS // 5, "turn": whole % 5,
                              "role": ["user"] * len(whole), "speaker": [("Ann", "Bo")[i % 2] for i in whole],
                              "text_id": texts["text_id"][1:]}),
        units=frame("units", {"unit": whole, "corpus": whole // UNITS, "session": whole % UNITS // 5,
                              "turns": [[int(i) % 5] for i in whole], "level": ["turn"] * len(whole)}),
        ranking=frame("ranking", {"question": q, "unit": unit, "score": scores.ravel(), "rank": rank + 1,
                                  "selected": [False] * len(q), "lane": scores.ravel() + rng.normal(size=len(q)),
                                  "tokens": rng.integers(5, 60, len(q)).astype(float)}),
        classes=frame("classes", {"question": range(questions), "class": ["factual"] * questions}),
        evidence=frame("evidence", {"question": q[held.ravel()], "session": session[held.ravel()],
                                    "turn": turn[held.ravel()]}),
        gold=frame("gold", {"question": range(questions), "answer": [""] * questions, "category": ["x"] * questions,
                            "abstain": [False] * questions, "scored": [True] * questions}),
    )
