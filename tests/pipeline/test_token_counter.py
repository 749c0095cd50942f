"""Who counts tokens, and for how long."""

from __future__ import annotations

import polars as pl

from memlab.pipeline.token_counter import Words, count_tokens, counter, counting, tokens_of

TEXTS = pl.Series("said", ["It's 7 pm, isn't it?", "", None, "naïve"])


class Letters:
    """Counts letters."""

    name = "letters"

    def identity(self) -> dict[str, str]:
        return {"tokens": self.name}

    def count_each(self, texts: pl.Expr) -> pl.Expr:
        return texts.str.len_chars().cast(pl.Int32)


def test_words_and_marks_unless_another_counter_is_set() -> None:
    assert counter() == Words()
    assert count_tokens(TEXTS).to_list() == [11, 0, None, 1]
    with counting(Letters()):
        assert count_tokens(TEXTS).to_list() == [20, 0, None, 5]
        assert tokens_of("cat") == 3
        with counting(Words()):
            assert tokens_of("cat") == 1
        assert tokens_of("cat") == 3
    assert tokens_of("cat") == 1
