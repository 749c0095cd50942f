"""FairytaleQA: its format on small made files, the rule of its evidence, and the counts of the official files."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from encoder_training.fairytaleqa import CATEGORIES, PASSAGE_WORDS, FairytaleQA, evidence_of, passages_of, words
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables, with_text
from memlab.support.errors import MemlabError

pytestmark = pytest.mark.nightly

ENDS = tuple(mark + quote for mark in ".!?" for quote in ("", '"', "'", "”", "’"))
LONG = " ".join(["The fox ran"] + ["on"] * 36)  # 39 words
STORY = [["section", "text"], ["1", 'A fox met\na hen. "Hello!" said she.'], ["2", f"{LONG}. It was late. All slept."],
               ["7", "The hen laughed, and the fox went home."]]
QUESTIONS = [
    ["question_id", "cor_section", "attribute1", "attribute2", "question", "answer1"],
    ["1", "1", "character", "", "Whom did the fox meet?", "the hen"],
    ["2", "7, 1", "Action ", "", " What did the fox do at last?", "went home"],
    ["3", "2", "setting", "", "When was it?", "late in the night"],
    ["4", "2,9", "causal relationship", "", "Why?", "because of a wolf"],
]


def table(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def tale(folder: Path, title: str = "fox", story: str = table(STORY), questions: str = table(QUESTIONS),
         part: str = "train") -> Path:
    """Write a story and its questions."""
    for kind, end, content in (("section-stories", "story", story), ("questions", "questions", questions)):
        file = folder / kind / part / f"{title}-{end}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Two stories, the first in title order among those for testing."""
    (tmp_path / "section-stories").mkdir()
    (tmp_path / "section-stories" / "no-questions-story.csv").write_text("")
    tale(tmp_path, "ant", table([STORY[0], ["1", "An ant ate."]]), table([QUESTIONS[0], *QUESTIONS[4:]]), part="test")
    return FairytaleQA(path=tale(tmp_path)).load()


def test_a_story_is_a_corpus_and_its_sections_are_sessions(tables: Tables) -> None:
    ids = tables["ids"]
    assert ids.filter(kind="corpus")["name"].to_list() == ["ant", "fox"]
    assert ids.filter(kind="session")["name"].to_list() == ["ant:0", "fox:0", "fox:1", "fox:2"]
    assert ids.filter(kind="question")["name"].to_list() == ["ant:4", "fox:1", "fox:2", "fox:3", "fox:4"]
    turns = with_text(tables["turns"].filter(corpus=1), tables["texts"])
    assert turns.select("session", "turn", "role", "speaker", "text").rows() == [
        (0, 0, "user", None, 'A fox met a hen. "Hello!" said she.'), (1, 0, "user", None, f"{LONG}."),
        (1, 1, "user", None, "It was late. All slept."),
        (2, 0, "user", None, "The hen laughed, and the fox went home.")]
    assert tables["sessions"]["said_on"].null_count() == 4
    assert tables["questions"]["asked_on"].null_count() == 5


def test_evidence_is_in_the_sections_that_a_question_cites(tables: Tables) -> None:
    assert tables["evidence"].rows() == [(1, 0, 0), (2, 2, 0), (3, 1, 1)]
    assert tables["gold"].select("category", "answer", "scored", "abstain").rows()[1:] == [
        ("character", "the hen", True, False), ("action", "went home", True, False),
        ("setting", "late in the night", True, False), ("causal relationship", "because of a wolf", False, False)]
    assert with_text(tables["questions"], tables["texts"])["text"][2] == "What did the fox do at last?"
    assert [number for _, number, _ in tables["notes"].rows()] == [3]  # 2 and 9 of the ant, 9 of the fox


@pytest.mark.parametrize(("answer", "passages", "evidence"), [
    ("a red cap", {0: ["A cap.", "The cap was red."]}, (0, 1)),  # 1/2, 2/2
    ("a red cap", {0: ["A cap."], 3: ["Red. The wolf"]}, (3, 0)),  # 1/2 each; one word of the question, none before
    ("a red cap", {2: ["It was red."], 1: ["Blue", "A cap.", "A cap."]}, (1, 1)),  # all equal: the first
    ("a red new cap", {0: ["A cap."]}, None),  # 1/3
    ("it was", {0: ["It was."]}, None), ("red", {}, None), ("red", {0: []}, None),
])
def test_the_rule_of_evidence(answer: str, passages: dict[int, list[str]], evidence: tuple[int, int] | None) -> None:
    held = {session: [words(text) for text in texts] for session, texts in passages.items()}
    assert evidence_of("What did the wolf see?", answer, held) == evidence


@given(st.text() | st.lists(st.sampled_from(["a", "Oh!", "end.", 'end."', "\n", "..", "x y z " * 9])).map(" ".join))
def test_passages_are_whole_sentences_and_give_the_text_back(text: str) -> None:
    passages = passages_of(text)
    assert " ".join(passages).split() == text.split()
    assert all(passage.endswith(ENDS) for passage in passages[:-1])
    for *inner, _ in (passage.split() for passage in passages):
        assert len(inner) < PASSAGE_WORDS or not any(word.endswith(ENDS) for word in inner)


def test_a_table_names_its_columns(tmp_path: Path) -> None:
    (tale(tmp_path) / "questions" / "train" / "fox-questions.csv").write_text("question\n")
    with pytest.raises(MemlabError, match=r"fox-questions\.csv: no column question_id or cor_section or attribute1 or "
                                          r"answer1\. Fix: give the official file"):
        FairytaleQA(path=tmp_path).load()


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"no questions/\*/\*-questions.csv is there.*fetch fairytaleqa"):
        FairytaleQA(path=tmp_path)
    tale(tmp_path, questions=table(QUESTIONS[:1]))
    with pytest.raises(MemlabError, match="no question is left"):
        FairytaleQA(path=tmp_path).load()
    (tmp_path / "section-stories" / "train" / "fox-story.csv").unlink()
    with pytest.raises(MemlabError, match=r"no section-stories/\*/fox-story.csv is there"):
        FairytaleQA(path=tmp_path)


def test_the_official_files(shared_data: Path) -> None:
    folder = shared_data / "fairytaleqa"
    if not folder.is_dir():
        pytest.skip(f"FairytaleQA is not at {folder}")
    tables = FairytaleQA(path=folder).load()
    assert {name: tables[name].height for name in ("sessions", "turns", "questions", "evidence")} == {
        "sessions": 4_095, "turns": 19_338, "questions": 10_580, "evidence": 8_820}
    assert "notes" not in tables  # every section that is cited is there
    assert tables["gold"]["scored"].sum() == 8_820
    assert set(tables["gold"]["category"]) == set(CATEGORIES)
    assert tables["sessions"]["corpus"].n_unique() == 278
