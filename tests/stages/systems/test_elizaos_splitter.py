from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memlab.experiment.config.instantiate import choice_settings, construct
from memlab.stages.systems.elizaos import FirstSeparator
from memlab.stages.write.chunk import Recursive
from memlab.store import Store
from tests.stages.write.conversations import talk, written

LONG = " ".join(f"This is sentence {i}." for i in range(80))
CHAT = talk([("user", "Hi"), ("assistant", LONG), ("user", "Thanks"), ("user", "Bye")])
MARKS = ("\n\n", "\n", ". ", " ")


def made(stage):
    return CHAT.updated(stage.run(CHAT, Store()))


def split(text: str, size: int, overlap: int):
    return FirstSeparator(size=size, overlap=overlap, separators=MARKS).cut(text)


def of_conf(name: str):
    faults: list[str] = []
    stage = construct(choice_settings(f"write/chunk/{name}"), "chunk", faults)
    assert faults == []
    return stage


def test_the_published_splitter_leaves_a_long_paragraph_whole_and_the_corrected_one_does_not():
    flawed, mended = of_conf("elizaos"), of_conf("elizaos_corrected")
    assert flawed == FirstSeparator()
    assert mended == Recursive(separators=MARKS)
    out = made(flawed)
    assert written(out) == ["user: Hi", f"user: Hi\n\nassistant: {LONG}", f"{LONG[-200:]}\n\nuser: Thanks\n\nuser: Bye"]
    assert len(f"assistant: {LONG}") > 1000
    assert out["memories"]["turns"].to_list() == [[0], [0, 1], [1, 2, 3]]
    assert set(out["memories"]["kind"]) == {"elizaos"}
    pieces = written(made(mended))
    assert max(map(len, pieces)) <= 1000
    assert len(pieces) > 3


def transcription(text: str, size: int, overlap: int) -> list[str]:
    """Cut a text by the published algorithm, with strings in place of positions."""
    for separator in MARKS:
        if len(text) <= size:
            return [text] if text.strip() else []
        closed: list[str] = []
        open_piece = ""
        for segment in text.split(separator):
            candidate = open_piece + separator + segment if open_piece else segment
            if len(candidate) <= size or not open_piece:
                open_piece = candidate
            else:
                closed.append(open_piece)
                open_piece = open_piece[max(len(open_piece) - overlap, 0):] + separator + segment
        closed += [open_piece] if open_piece else []
        if closed:
            return [piece for piece in closed if piece.strip()]
    return []


@given(st.text(alphabet="ab. \n", max_size=80), st.integers(1, 20), st.data())
def test_pieces_are_those_of_the_published_algorithm(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = split(text, size, overlap)
    assert [text[a:b] for a, b in spans] == transcription(text, size, overlap)
    assert {i for a, b in spans for i in range(a, b)} >= {i for i, char in enumerate(text) if char.strip()}
