from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memlab.models.protocols import Message
from memlab.stages.read.reader import PER_MESSAGE, PER_PROMPT, count_fitting, prompt_tokens
from tests.chats import ScriptedChat

CHAT = ScriptedChat(str, window=500, max_tokens=100)


def test_a_prompt_costs_its_words_and_the_template_around_them() -> None:
    assert prompt_tokens(CHAT, [Message("system", "a b"), Message("user", "c.")]) == PER_PROMPT + 2 * PER_MESSAGE + 4


@given(st.lists(st.integers(0, 20), max_size=8), st.integers(0, 30), st.integers(-3, 3), st.integers(0, 90))
def test_the_largest_number_that_fits_whatever_the_guess(costs: list[int], base: int, wrong: int, space: int) -> None:
    def whole(n: int) -> int:
        return base + sum(costs[:n])

    n = count_fitting(len(costs), lambda i: max(costs[i] + wrong, 0), whole, space)
    assert n == max((k for k in range(len(costs) + 1) if whole(k) <= space), default=0)
