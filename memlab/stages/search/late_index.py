"""Late interaction over large pools: candidates by centroid, and exact scores of the candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from memlab.models.protocols import Floats, Ints
from memlab.pipeline.stage import stage
from memlab.stages.search.hits import topk
from memlab.stages.search.late_interaction import Queries, WeightedLate
from memlab.stages.search.maxsim import best_matches, weighted_sums
from memlab.stages.search.token_lists import TokenLists
from memlab.stages.search.token_pools import Places, TokenPool
from memlab.store import Store

Positive = Annotated[int, Field(ge=1)]

ONE_IN, FEWEST, MOST = 25, 1000, 4000
"""Candidates of a lane: a share of the memories, in bounds. A thousand among 100,000 turns lose too much."""

WINDOWS = 2
"""The lane of windows has 1 / WINDOWS of the candidates of the others: all neighbours of each are matched as well."""


@stage
class LateIndex(WeightedLate):
    """Weighted late interaction of the best candidates of each lane, each with its exact score.

    The candidates of a lane are those with the best estimates (``memlab.stages.search.token_lists``); sessions are also
    chosen
    by the exact matches of the other lanes' candidates. All that a candidate's score depends on, its neighbours and its
    session, is matched exactly too. Document frequencies are exact.
    """

    exact_below: Annotated[int, Field(ge=0)] = 200_000  # pools with fewer token vectors are searched exactly
    # and so are pools with fewer queries, except in a live memory, which keeps its lists: k-means and the assignment of
    # all tokens cost as much as a few hundred exact searches
    exact_queries: Annotated[int, Field(ge=0)] = 300
    # memories of each lane, windows too, that are scored; null: one in 25 of those that a query sees, from 1,000 to
    # 4,000, and in the lane of windows half of that, at least 1,000
    candidates: Positive | None = None
    probes: Positive = 32  # centroids of each query token whose texts get an estimate of their own
    centroids: Positive | None = None  # null: a power of two near 10 times the root of the number of token vectors
    seed: Annotated[int, Field(ge=0)] = 0  # of the k-means that places the centroids

    def _scores(self, pool: TokenPool, queries: Queries, visible: Ints, store: Store
                ) -> Iterator[tuple[int, str, Ints, Floats]]:
        settings = (self.matcher.token_identity("document"), self.number_format(), pool.rows.kind, self.centroids,
                    self.seed)
        name = f"late index {settings}"
        few = not store.caches_indexes and len(queries) < self.exact_queries
        if few or int(pool.texts.lengths.sum()) < self.exact_below:
            yield from super()._scores(pool, queries, visible, store)
            return
        lists = store.index(name, lambda: TokenLists(self.centroids, self.seed, store.codes_file(name)))
        postings = lists.of(pool.texts)
        for i, (ids, query) in enumerate(queries):
            if seen := int(visible[i]):
                place = postings.place[pool.text_of[:seen]]
                weight = self.weights(postings.document_frequencies(ids, np.bincount(place, minlength=postings.size)),
                                      seen)
                search = _Search(self, pool, pool.places(seen, self.window), place, query, weight)
                for lane, positions, scores in search.lanes(postings.estimates(query, self.probes)):
                    yield i, lane, positions, scores


def usual_candidates(visible: int) -> tuple[int, int]:
    """Return how many of so many memories are scored in a lane, and in that of windows.

    >>> usual_candidates(500), usual_candidates(64_000), usual_candidates(1_000_000)
    ((1000, 1000), (2560, 1280), (4000, 2000))
    """
    most = min(max(visible // ONE_IN, FEWEST), MOST)
    return most, max(most // WINDOWS, FEWEST)


class _Search:
    """One query of a pool.

    Args:
        stage: The settings.
        pool: What is searched.
        places: The visible memories by session.
        place: (n,) the column of each visible memory's text in the estimates.
        query: (t, dim) token vectors.
        weight: (t,) their weights.
    """

    def __init__(self, stage: LateIndex, pool: TokenPool, places: Places, place: Ints, query: Floats,
                 weight: Floats) -> None:
        self.stage, self.pool, self.places, self.query, self.weight = stage, pool, places, query, weight
        self.place, self.place_on = place, pool.place_on(stage.matcher)
        number = stage.candidates
        self.candidates, self.window_candidates = (number, number) if number else usual_candidates(len(place))

    def lanes(self, estimates: Floats) -> Iterator[tuple[str, Ints, Floats]]:
        """Yield the name, the candidates (m,) and their exact scores (m,) of each lane."""
        stage, places = self.stage, self.places
        ids = self.pool.memories[: len(self.place)]
        matches = np.full((len(self.query), places.width), -np.inf, np.float32)
        matches[:, places.column] = estimates[:, self.place]
        alone = self._best(weighted_sums(self.weight, estimates)[self.place], ids, self.candidates)
        exact, window, session = places.column[alone], alone, np.empty(0, np.int64)
        if stage.window:
            wide = weighted_sums(self.weight, places.in_window(matches))[places.column]
            window = self._best(wide, ids, self.window_candidates)
            exact = np.union1d(exact, places.around(places.column[window]))
        by_estimate = self._session_scores(matches) if stage.sessions else np.empty(0, np.float32)
        self._match(matches, exact)
        if stage.sessions:
            session = self._best_sessions(by_estimate, matches, exact)
            self._match(matches, np.setdiff1d(places.of_sessions(session), exact))
        yield stage.name, alone, weighted_sums(self.weight, matches[:, places.column[alone]])
        if stage.window:
            near = places.column[window][:, None] + np.arange(-places.gap, places.gap + 1)
            yield f"{stage.name}_window", window, weighted_sums(self.weight, matches[:, near].max(axis=2))
        if stage.sessions:
            members = places.memory[places.of_sessions(session)]
            best = weighted_sums(self.weight, places.in_sessions(matches, session))
            yield (f"{stage.name}_session", members,
                   np.repeat(best, places.ends[session] - places.begins[session]))

    def _best(self, scores: Floats, ids: Ints, number: int) -> Ints:
        """Return the memories with the best estimates, ascending."""
        return np.sort(topk(scores, ids, number))

    def _session_scores(self, matches: Floats) -> Floats:
        """Return the scores (s,) of all sessions by some matches."""
        return weighted_sums(self.weight, self.places.in_sessions(matches, np.arange(len(self.places.begins))))

    def _best_sessions(self, by_estimate: Floats, matches: Floats, exact: Ints) -> Ints:
        """Return the sessions that are best by estimates or by exact matches, ascending; they hold all candidates.

        Over many memories estimates alone rank sessions badly: the maximum over a session's members is high for all of
        them. Exact matches are those in the columns ``exact``.
        """
        known = np.full_like(matches, -np.inf)
        known[:, exact] = matches[:, exact]
        every = np.arange(len(by_estimate))
        rank = np.full(len(every), len(every))
        for scores in (by_estimate, self._session_scores(known)):
            order = topk(scores, every, len(every))
            rank[order] = np.minimum(rank[order], every)
        order = np.argsort(rank, kind="stable")
        members = np.cumsum((self.places.ends - self.places.begins)[order])
        return np.sort(order[: np.searchsorted(members, self.candidates) + 1])

    def _match(self, matches: Floats, columns: Ints) -> None:
        """Replace the estimates in some columns by the exact matches."""
        texts, text_of = np.unique(self.pool.text_of[self.places.memory[columns]], return_inverse=True)
        matches[:, columns] = best_matches(self.query, self.place_on.take(texts)).T[:, text_of]
