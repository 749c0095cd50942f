"""The haystack around the relevant memories: small talk of synthetic lives, talk about work, notes in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from memlab.data.synthetic import lexicon
from memlab.data.synthetic.dialogue import chats
from memlab.data.synthetic.events import Knobs, Life

T = TypeVar("T")
ROUNDS = 2  # per chat, each a user turn and a reply
NOTES = 12  # notes between two pieces of one file: more than a chunk of 400 tokens

SERVICES = ("catalogue", "mailer", "thumbnail", "login", "translation", "export", "geocoder", "calendar",
            "newsletter", "telemetry", "coupon", "warehouse")
TOOLS = ("the linter", "the profiler", "the message queue", "the load balancer", "the feature branch", "the test suite",
         "the dashboard", "the style guide", "the container image", "the bug tracker")
TASKS = ("writing the release notes", "moving the old tickets", "the German wording", "cleaning the test data",
         "a flaky integration test", "the colours of the charts", "the memory use", "a slow start", "dead links",
         "naming the columns", "the icons on small screens", "the permissions of guests")
USER_TEMPLATES = (
    "Can you look at {task} in the {service} service?", "{who} wants to know how {task} is going.",
    "I spent the morning on {task}, and {tool} did not help.", "Is {tool} ready for the {service} service?",
    "{who} and I disagree about {task}.", "How would you begin with {task}?",
    "The {service} service has a new owner, {who}.", "We postponed {task} by {number} days.",
)
REPLY_TEMPLATES = (
    "For {task} I would start with a list.", "{who} knows {tool} better than anybody.",
    "Give the {service} service a small test first.", "I can draft something about {task}.",
    "With {tool}, less is often more.", "Then {number} days should be enough.",
)
NOTE_TEMPLATES = (
    "Notes on the {service} service: {who} is going to look at {task} before {tool} is changed, and after that "
    "the numbers are compared with those of the week before, as {other} proposed when we last spoke about it.",
    "About {task}: {tool} shows {number} open points for the {service} service, most of them small, and {who} has "
    "taken on half of them while {other} writes down what we learn on the way.",
    "{who} explained how {tool} and the {service} service fit together; {task} stays open until {other} is back, "
    "and nobody should touch the defaults before then, however tempting it may look.",
    "For the next {number} weeks {task} comes first. {who} keeps an eye on {tool}, {other} on the {service} "
    "service, and both write a line here whenever something surprising turns up.",
)
ACKNOWLEDGEMENTS = ("Thanks, noted.", "Good to know.", "I will keep that in mind.", "All right, I have that.")
GROUPS = ("Silver", "Harbour", "Falcon", "Meadow", "Compass", "Raven", "Garden", "Mirror")


class HaystackTurn(NamedTuple):
    """One turn: ``speaker`` is a file's name or, in a chat, None; ``piece`` is the name of its piece, if any."""

    role: str
    speaker: str | None
    text: str
    piece: str | None = None


class Haystack:
    """A seeded source of sessions that are unrelated to the question."""

    def __init__(self, seed: Sequence[int], sessions: int) -> None:
        self.random = np.random.default_rng(seed)
        life = Life(seed, sessions, Knobs(0.0, 0.0, (2, 2)))
        self._small = iter(chats(life)[0])

    def pick(self, options: Sequence[T]) -> T:
        """Draw an option."""
        return options[int(self.random.integers(len(options)))]

    def chat(self, piece: tuple[str, str | None] | None = None) -> list[HaystackTurn]:
        """Return a chat about work or everyday life; a piece (text, name) takes the place of one user turn."""
        small = next(self._small)
        rounds = [(small[2 * i], small[2 * i + 1]) for i in range(ROUNDS)]
        if self.random.random() < 0.5:
            rounds = [(self._work(USER_TEMPLATES), self._work(REPLY_TEMPLATES)) for _ in range(ROUNDS)]
        turns = [HaystackTurn(role, None, text) for pair in rounds for role, text in zip(("user", "assistant"), pair)]
        if piece is not None:
            at = 2 * int(self.random.integers(ROUNDS))
            turns[at] = HaystackTurn("user", None, *piece)
            turns[at + 1] = HaystackTurn("assistant", None, self.pick(ACKNOWLEDGEMENTS))
        return turns

    def file(self, path: str, pieces: Sequence[tuple[str, str]] = ()) -> list[HaystackTurn]:
        """Return a memory file, one turn per paragraph: notes, and the pieces (text, name) with many notes between."""
        turns = [self._note(path) for _ in range(2)]
        for number, (text, name) in enumerate(pieces):
            turns += [self._note(path) for _ in range(NOTES * (number > 0))]
            turns.append(HaystackTurn("user", path, text, name))
        return [*turns, self._note(path), self._note(path)]

    def path(self) -> str:
        """Draw a name for a file of notes."""
        return f"memory/{self.pick(SERVICES)}-{self.pick(GROUPS).lower()}.md"

    def _note(self, path: str) -> HaystackTurn:
        return HaystackTurn("user", path, self._work(NOTE_TEMPLATES))

    def _work(self, templates: Sequence[str]) -> str:
        who, other = (lexicon.NAMES[int(i)] for i in self.random.choice(len(lexicon.NAMES), 2, replace=False))
        return self.pick(templates).format(
            service=self.pick(SERVICES), tool=self.pick(TOOLS), task=self.pick(TASKS), who=who, other=other,
            number=int(self.random.integers(3, 19)))
