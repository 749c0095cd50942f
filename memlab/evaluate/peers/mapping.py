"""The turns that a peer means by what it returns: by id, else by the same text, else by a text inside another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

SHORTEST = 12
"""Characters from which a text that is returned may be a part of a turn: a shorter one is in too many."""


def normalised(text: str) -> str:
    """Return a text in small letters with single spaces.

    >>> normalised(" Ann:  Hello\\n")
    'ann: hello'
    """
    return " ".join(text.casefold().split())


class TurnMap:
    """The turns of one memory, by their places: id -> text, in order."""

    def __init__(self, turns: Mapping[str, str]) -> None:
        self._by_id = {turn: place for place, turn in enumerate(turns)}
        self._texts = [normalised(text) for text in turns.values()]
        self._by_text: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(self._texts):
            self._by_text[text].append(place)
        self._by_part = cache(self._containing)

    def places(self, returned: Sequence[str]) -> tuple[list[int], int]:
        """Return the turns, by their places, that a list of ids or texts means, and how many of it mean none.

        A turn is named once. Of turns with the same text, the first that was not yet named is meant.
        """
        found: dict[int, None] = {}
        unmapped = 0
        for item in returned:
            text = normalised(item)
            if item in self._by_id:
                meant = [self._by_id[item]]
            elif text in self._by_text:
                same = self._by_text[text]
                meant = [next((place for place in same if place not in found), same[0])]
            else:
                meant = self._by_part(text)
            found |= dict.fromkeys(meant)
            unmapped += not meant
        return list(found), unmapped

    def _containing(self, text: str) -> list[int]:
        """Return the turns inside a text, in order; if there is none, the first turn that the text is a part of."""
        inside = [place for place, turn in enumerate(self._texts) if turn and turn in text]
        part_of = (place for place, turn in enumerate(self._texts) if len(text) >= SHORTEST and text in turn)
        return inside or [*part_of][:1]
