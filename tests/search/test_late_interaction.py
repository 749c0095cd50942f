"""Every pair scored."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memlab.errors import MemlabError
from memlab.search import late_interaction
from memlab.search.late_interaction import Late
from memlab.store import Store
from tests.search.world import Overlap, day, world

MEMORIES = [(0, "tea cup", day(0)), (0, "red tea", day(3)), (0, "sea", None), (1, "tea cup", day(0)),
            (1, "tea cup", day(0), "session")]
QUESTIONS = [(0, "red cup", day(1)), (0, "tea", None), (1, "red cup", None)]


def test_scores_are_the_scorers_pair_by_pair() -> None:
    tables = world(MEMORIES, QUESTIONS)
    hits = Late(scorer=Overlap()).run(tables, Store())["hits"]
    texts = dict(zip(range(1005, 1000, -1), (m[1] for m in MEMORIES)))
    assert {(h["query"], h["lane"], h["memory"], h["score"]) for h in hits.to_dicts()} == {
        (10 + q, f"late:{'session' if m == 1001 else 'turn'}", m, round(Overlap.of(QUESTIONS[q][1], texts[m]), 6))
        for q, m in [(0, 1005), (0, 1003), (1, 1005), (1, 1004), (1, 1003), (2, 1002), (2, 1001)]}
    assert hits.filter(query=11)["memory"].to_list() == [1004, 1005, 1003]


def test_each_pair_of_texts_is_scored_once() -> None:
    store = Store()
    Late(scorer=Overlap()).run(world(MEMORIES, QUESTIONS), store)
    assert store.made["pairs"] == 5  # red cup x {tea cup, sea}, tea x {tea cup, red tea, sea}


def test_too_many_pairs_are_refused_before_any_is_scored() -> None:
    store = Store()
    with pytest.raises(MemlabError, match=r"7 pairs .* max_pairs = 6.*search.late.max_pairs=7"):
        Late(scorer=Overlap(), max_pairs=6).run(world(MEMORIES, QUESTIONS), store)
    assert store.made["pairs"] == 0
    assert Late(scorer=Overlap(), max_pairs=7).run(world(MEMORIES, QUESTIONS), store)["hits"].height == 7


@dataclass(frozen=True)
class Placed(Overlap):
    """A scorer that says where it runs."""

    gpu: bool = True

    def on_gpu(self) -> bool:
        return self.gpu


def test_a_gpu_is_given_more_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of the model's device; the 7 pairs here are too many for one and not for the other."""
    monkeypatch.setattr(late_interaction, "MAX_PAIRS", 6)
    monkeypatch.setattr(late_interaction, "GPU_MAX_PAIRS", 7)
    tables = world(MEMORIES, QUESTIONS)
    assert Late(scorer=Placed()).run(tables, Store())["hits"].height == 7
    for elsewhere in (Overlap(), Placed(gpu=False)):
        with pytest.raises(MemlabError, match="more than max_pairs = 6"):
            Late(scorer=elsewhere).run(tables, Store())
    with pytest.raises(MemlabError, match="more than max_pairs = 5"):
        Late(scorer=Placed(), max_pairs=5).run(tables, Store())


def test_nothing_to_see_gives_no_hits() -> None:
    assert Late(scorer=Overlap()).run(world([], QUESTIONS), Store())["hits"].height == 0
    assert Late(scorer=Overlap()).run(world([(0, "a", day(9))], QUESTIONS[:1]), Store())["hits"].height == 0
