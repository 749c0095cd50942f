"""Questions about talk between people as memory benchmarks: FriendsQA by scenes, and Molweni, for data=custom.

    python experiments/shipped_fit/talk.py friendsqa FOLDER OUT      the repository's folder dat
    python experiments/shipped_fit/talk.py molweni FILE OUT          MRC(withDiscourse)/test.json

FriendsQA (Yang and Choi, SIGDIAL 2019, github.com/emorynlp/FriendsQA, Apache-2.0): scenes by title, 15 to a corpus, a
week each. Molweni (Li et al., COLING 2020, github.com/HIT-SCIR/Molweni, Apache-2.0): pieces of Ubuntu's chat, 25 to a
corpus, a day each. A scene or piece is a session; its evidence are the turns that hold an answer.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from encoder_training.friendsqa import join_tokens, speaker_of

START, ASKED = date(2000, 1, 3), date(2000, 6, 1)

Talk = tuple[str, list[dict[str, str | None]], list[tuple[str, list[int]]]]
"""Name of a session, its turns, and its questions with the turns that answer them."""


def friendsqa(folder: Path) -> Iterator[Talk]:
    """Yield the scenes of all files, by title."""
    records = [record for path in sorted(folder.glob("friendsqa_*.json"))
               for record in json.loads(path.read_text(encoding="utf-8"))["data"]]
    for record in sorted(records, key=lambda one: str(one["title"])):
        for scene in record["paragraphs"]:
            turns = [{"role": "user", "speaker": speaker_of(said["speakers"]), "text": join_tokens(said["utterance"])}
                     for said in scene["utterances:"]]  # the files spell the key so
            number = {said["uid"]: turn for turn, said in enumerate(scene["utterances:"])}
            questions = [(join_tokens(asked["question"]),
                          sorted({number[a["utterance_id"]] for a in asked["answers"] if a["utterance_id"] in number}))
                         for asked in scene["qas"]]
            yield record["title"], turns, questions


def molweni(path: Path) -> Iterator[Talk]:
    """Yield the pieces of chat in the order of the file; an answer's place counts in "speaker: text" of all turns."""
    for number, piece in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]["dialogues"]):
        turns = [{"role": "user", "speaker": said["speaker"], "text": said["text"]} for said in piece["edus"]]
        starts = list(accumulate((len(f"{said['speaker']}: {said['text']} ") for said in piece["edus"]), initial=0))
        questions = [
            (asked["question"], sorted({bisect_right(starts, a["answer_start"]) - 1 for a in asked["answers"]}))
            for asked in piece["qas"] if not asked["is_impossible"]]
        yield f"piece_{number}", turns, questions


def write(talks: Iterator[Talk], size: int, days: int, out: Path) -> None:
    """Write OUT/sessions.jsonl and OUT/questions.jsonl: ``size`` sessions to a corpus, ``days`` apart."""
    sessions: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    for number, (name, turns, asked) in enumerate(talks):
        corpus, place = divmod(number, size)
        sessions.append({"corpus": str(corpus), "session": name, "said_on": str(START + timedelta(days * place)),
                         "turns": turns})
        questions += [{"question": f"{name}:{index}", "corpus": str(corpus), "text": text, "asked_on": str(ASKED),
                       "evidence": [{"session": name, "turn": turn} for turn in evidence]}
                      for index, (text, evidence) in enumerate(asked) if evidence]
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in (("sessions", sessions), ("questions", questions)):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("friendsqa", "molweni"):
        sys.exit(__doc__)
    place, target = Path(sys.argv[2]), Path(sys.argv[3])
    if sys.argv[1] == "friendsqa":
        write(friendsqa(place), 15, 7, target)
    else:
        write(molweni(place), 25, 1, target)
