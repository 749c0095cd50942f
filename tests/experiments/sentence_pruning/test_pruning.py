from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_pruning.pruning import PrunedByRank, split

from memlab.pipeline.tables import Tables
from memlab.stages.read.pack import ByRank
from memlab.store import Store
from tests.experiments.chunking.test_semantic import Themes
from tests.stages.read.world import shown, tokens, world
from tests.stages.write.conversations import DAY

pytestmark = pytest.mark.nightly

STORE = Store()
D0, D1 = "[2023-05-20]\n", "[2023-05-21]\n"
LATER = DAY + timedelta(days=400)
LONG = "We went for a walk. My sister adopted a grey cat. The cat sleeps all day. It rained on Monday."
TALK = [[("user", LONG), ("assistant", "Nice weather today. Tell me more about it. Any plans?")],
        [("user", "A cat was on the roof. Nobody knew it.")]]


def packed(pack, tables: Tables, question: int = 0) -> list[str]:
    return shown(tables.updated(pack.run(tables.only(pack.reads), STORE)), question)


def ask(text: str, talk=TALK, order=(0, 1, 2), **more) -> Tables:
    return world(talk, order, asked=((text, LATER),), **more)


def test_the_best_sentences_are_shown_in_their_order_with_day_and_speaker() -> None:
    tables = ask("What did the sister adopt, a cat?")
    # idf over three units: cat .47, in two of them; sister and adopt .98, in one; the first unit's sentences hold none,
    # all three, cat, and none: 0, 2.43, .47, 0, and with half of what stands beside them 1.22, 2.67, 1.69, .24
    assert tokens("My sister adopted a grey cat.") == 7 < .5 * (6 + 7 + 6 + 5) <= 7 + 6
    first = D0 + "user: My sister adopted a grey cat. The cat sleeps all day."
    assert packed(PrunedByRank(share=.5), tables)[0] == first
    assert packed(PrunedByRank(share=.1), tables)[0] == D0 + "user: My sister adopted a grey cat."
    assert packed(PrunedByRank(share=.6), tables)[0] == (
        D0 + "user: We went for a walk. My sister adopted a grey cat. The cat sleeps all day.")


def test_the_first_sentences_stay_where_no_word_is_shared() -> None:
    assert packed(PrunedByRank(share=.4), ask("Quantum physics?"))[1] == D0 + (
        "assistant: Nice weather today. Tell me more about it.")


def test_the_whole_share_is_the_plain_pack_to_the_letter() -> None:
    tables = ask("cat", [[("user", "One.\n\n\nTwo:  three. ")], [("user", "")]], (0, 1))
    assert packed(PrunedByRank(share=1.0), tables) == packed(ByRank(), tables)
    assert PrunedByRank(share=.3).whole() == PrunedByRank(share=1.0)


def test_names_and_line_breaks_split_turns_and_sentences() -> None:
    names = frozenset({"Ann", "Ben"})
    text = "Ann: It costs 3.50 now.\n- Note: red\n\nCarl: no name.\n\nBen: Oh?"
    assert split(text, names) == [
        (0, "Ann: ", "It costs 3.50 now.", "\n"), (0, "Ann: ", "- Note: red", "\n\n"),
        (0, "Ann: ", "Carl: no name.", "\n\n"), (1, "Ben: ", "Oh?", "")]
    assert split("Ann: ", names) == []


said = st.lists(st.sampled_from(["cat", "dog", "sat", "ran"]), min_size=1, max_size=4).map(lambda w: " ".join(w) + ".")


@given(st.lists(st.lists(said, min_size=1, max_size=5, unique=True), min_size=1, max_size=4, unique_by=tuple),
       st.sampled_from([.2, .5, .8]), st.integers(1, 4))
def test_each_unit_shows_some_of_its_sentences_whatever_else_is_selected(turns, share, selected) -> None:
    talk = [[("user", " ".join(sentences)) for sentences in turns]]
    units = [*range(len(turns))]
    pack = PrunedByRank(share=share)
    every = packed(pack, ask("Who saw the cat run?", talk, units))
    assert len(every) == len(set(" ".join(t) for t in turns))
    for text, sentences in zip(every, turns):
        kept = [s + "." for s in text.removeprefix(D0 + "user: ").rstrip(".").split(". ")]
        places = [sentences.index(s) for s in kept]
        assert places == sorted(places)
        assert sum(map(tokens, kept)) >= share * sum(map(tokens, sentences)) - 1e-6
        assert tokens(text) <= tokens(D0 + "user: " + " ".join(sentences))
    assert packed(pack, ask("Who saw the cat run?", talk, units, selected=selected)) == every[:selected]


def test_vectors_find_a_sentence_that_shares_no_word(tmp_path) -> None:
    talk = [[("user", "On Monday I slept late. We went out for lunch. Then a puss came along.")]]
    tables = ask("Which pet came on Monday?", talk, (0,))
    assert packed(PrunedByRank(share=.1, neighbours=0), tables) == [D0 + "user: On Monday I slept late."]
    with_vectors = PrunedByRank(share=.1, neighbours=0, embedder=Themes((("pet", "cat", "puss"),)))
    # half of the question's words that are said anywhere and a cosine of 1, against the other half and 0.1
    out = with_vectors.run(tables.only(with_vectors.reads), Store(tmp_path))
    assert shown(tables.updated(out)) == [D0 + "user: Then a puss came along."]
