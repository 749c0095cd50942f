"""FriendsQA: scenes of a television series, with questions and the utterances that hold their answers.

Yang and Choi, "FriendsQA: Open-Domain Question Answering on TV Show Transcripts" (SIGDIAL 2019),
github.com/emorynlp/FriendsQA, Apache-2.0. Reads the folder of its files, or one of them. It serves training: utterances
are far shorter than the turns of a memory, and each question asks about one scene.
"""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.several import SeveralFiles
from memlab.data.subset import known_types
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

CATEGORIES = ("what", "who", "where", "when", "why", "how")
"""The first word that each question was asked for; the files name it in the question's id."""

_EPISODE = re.compile(r"(s\d+_e\d+)_c\d+")
_CATEGORY = re.compile(rf"_({'|'.join(CATEGORIES)})(_|$)", re.IGNORECASE)
_NOTE, _ALL = "#NOTE#", "#ALL#"
_WHOLE_NAME = re.compile(  # Dr. Rhodes, Pete's Mom, The Doctor, Girl 1, Best Man: the first word is no name
    r"(\S+\.|\S+'s|The|Fake|Guru|Nurse) "
    r"|.* (\d+|Agent|Announcer|Attendant|Bully|Hostess|Man|Manager|Planner|Voice)$")
# spaces are single by then: no pattern needs a repetition, and the time is linear in the length of the text
_JOINS = tuple((re.compile(pattern, re.IGNORECASE), new) for pattern, new in (
    (r" ([.,!?;:%)\]}])", r"\1"), (r"([(\[{$]) ", r"\1"), (r" (n't|'(?:s|m|re|ve|ll|d))\b", r"\1"),
    (r"\b(can) (not)\b", r"\1\2"), (r"\b(gon|wan) (na)\b", r"\1\2"), (r"\b(got) (ta)\b", r"\1\2"),
    (r"\b(gim|lem) (me)\b", r"\1\2")))


@stage
class FriendsQA(SeveralFiles):
    """An episode is a corpus, its scenes are the sessions; speakers are users with a first name."""

    benchmark: ClassVar = "friendsqa"
    pattern: ClassVar = "friendsqa_*.json"

    path: LocalPath | None = None  # folder of friendsqa_*.json, or one file; null = $MEMLAB_HOME/data/friendsqa

    def __post_init__(self) -> None:
        super().__post_init__()
        known_types(self.types, CATEGORIES)

    def load(self) -> Tables:
        """Read the files; raise MemlabError naming file and field where one is not as expected."""
        episodes: dict[str, list[tuple[str, object, str]]] = {}  # -> the title, the scene and the place of each
        for path in self._files():
            for number, record in enumerate(readers.need(readers.whole(path, dict), "data", list, str(path))):
                where = f"{path}, field data[{number}]"
                title = readers.need(record, "title", str, where)
                match = _EPISODE.fullmatch(title)
                scenes = readers.need(record, "paragraphs", list, where)
                episodes.setdefault(match[1] if match else title, []).extend(
                    (title, scene, f"{where}.paragraphs[{part}]") for part, scene in enumerate(scenes))
        build, question = Builder(), 0
        for corpus, episode in enumerate(sorted(episodes)):
            build.corpus(corpus=corpus, name=episode)
            for session, (title, scene, where) in enumerate(sorted(episodes[episode], key=lambda entry: entry[0])):
                build.session(corpus=corpus, session=session, said_on=None, name=title)
                positions = _utterances(build, corpus, session, scene, title, where)
                for index, item in enumerate(readers.need(scene, "qas", list, where)):
                    _question(build, question, corpus, session, item, positions, f"{where}.qas[{index}]")
                    question += 1
        return self.cut(build.tables(), build.missing)

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["FriendsQA gives no dates, so the as-of filter hides nothing. Each question asks about one scene; its "
                "evidence is every utterance in which an annotator found an answer, and one of them may do.",
                *super().notes()]

def join_tokens(text: str) -> str:
    """Return a transcript's text without the spaces between its tokens.

    >>> join_tokens("I told you , we 're adding operators . You ca n't get it ?")
    "I told you, we're adding operators. You can't get it?"
    """
    text = " ".join(text.split())
    for pattern, new in _JOINS:
        text = pattern.sub(new, text)
    return text


def speaker_of(names: list[str]) -> str | None:
    """Return who speaks: first names, as the questions have them; None for a note of the transcript.

    >>> speaker_of(["Monica Geller", "Dr. Rhodes"]), speaker_of(["#ALL#"]), speaker_of(["#NOTE#"])
    ('Monica and Dr. Rhodes', 'All', None)
    """
    people = (" ".join(name.split()) for name in names if name != _NOTE)
    return " and ".join("All" if name == _ALL else name if _WHOLE_NAME.match(name) else name.split()[0]
                        for name in people if name) or None


def _utterances(build: Builder, corpus: int, session: int, scene: object, title: str, where: str) -> dict[int, int]:
    """Add the utterances of a scene; return the position of each number that the answers cite."""
    positions: dict[int, int] = {}
    for turn, item in enumerate(readers.need(scene, "utterances:", list, where)):  # the files spell the key so
        spot = f"{where}, utterance {turn}"
        number = readers.need(item, "uid", int, spot)
        if positions.setdefault(number, turn) != turn:
            raise MemlabError(f"utterance {positions[number]} has the number {number} too", where=f"{spot}, field uid")
        build.turn(corpus=corpus, session=session, turn=turn, role="user",
                   speaker=speaker_of(readers.texts(item, "speakers", spot)),
                   text=join_tokens(readers.need(item, "utterance", str, spot)), name=f"{title}:{number}")
    return positions


def _question(build: Builder, question: int, corpus: int, session: int, item: object, positions: dict[int, int],
              where: str) -> None:
    """Add a question; its evidence is every utterance that an answer cites."""
    answers = readers.need(item, "answers", list, where)
    cited = {readers.need(answer, "utterance_id", int, f"{where}.answers[{n}]")
             for n, answer in enumerate(answers)}
    evidence = sorted(positions[number] for number in cited & positions.keys())
    name = readers.need(item, "id", str, where)
    category = _CATEGORY.search(name)
    if category is None:
        raise MemlabError(f"expected an id that ends in one of {', '.join(CATEGORIES)}, got {name!r}",
                          where=f"{where}, field id")
    build.question(question=question, corpus=corpus, text=join_tokens(readers.need(item, "question", str, where)),
                   asked_on=None, name=name, category=category[1].lower(), abstain=False, scored=bool(evidence),
                   answer=join_tokens(readers.need(answers[0], "answer_text", str, f"{where}.answers[0]"))
                   if answers else None)
    build.missing_evidence(question=question, number=len(cited) - len(evidence))
    for turn in evidence:
        build.evidence(question=question, session=session, turn=turn)
