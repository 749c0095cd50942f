"""Work during which a system call fails or the process is killed, and what must hold afterwards.

Each scenario has ``prepare`` (what is there before), ``act`` (the work) and ``check`` (what must hold in the folder;
``done`` says whether the work ended without an error).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from memlab import run
from memlab.commands.store import verify
from memlab.experiment.harness.results import read_arm
from memlab.memory.memory import Memory, Session
from memlab.models.protocols import Message, Prompt
from memlab.report.build import build
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.memory.test_faults import PIPELINE, SECRET, WORDS, filled
from tests.small import content_of, words
from tests.store.worker import DigestEmbedder, expected, some_texts
from tests.token_words import TokenWords


class Scenario(Protocol):
    """Work on a folder."""

    def prepare(self, folder: Path) -> None:
        """Write what is there before the work."""

    def act(self, folder: Path) -> None:
        """Do the work; a MemlabError is a defined end."""

    def check(self, folder: Path, done: bool) -> None:
        """Raise AssertionError unless the folder is as it must be."""


def everything(folder: Path) -> bytes:
    """Return the bytes of all files below a folder."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


LATER = Session("2023-06-05", [("user", "I live in Rome.")])
VOTED = pl.DataFrame([{"session": name, "turns": [0]} for name in ("kept", "also kept")])
CHANGES: dict[str, tuple[Callable[[Memory], object], list[int]]] = {
    "add": (lambda memory: memory.add(LATER), [1, 0, 0, 0]),
    "add_many": (lambda memory: memory.add_many([LATER, LATER, LATER]), [3, 0, 0, 0]),
    "update": (lambda memory: memory.update("kept", LATER), [1, 1, 0, 0]),
    "deprecate": (lambda memory: memory.deprecate(where={"name": ["kept", "also kept"]}), [0, 0, 2, 0]),
    "feedback": (lambda memory: memory.feedback(VOTED, useful=True, now="2023-06-05"), [0, 0, 0, 2])}
"""Changes that forget nothing, and the sessions, newer versions, deprecated turns and votes that each adds."""

FORGETTING: dict[str, Callable[[Memory], object]] = {
    "forget": lambda memory: memory.forget("secret"), "prune": lambda memory: memory.prune("2023-06-15"),
    "replace": lambda memory: memory.update("secret", LATER, keep_old=False)}
"""Changes that forget the session "secret", whose number is 1."""


class LiveMemory:
    """A change or a backup of a live memory: nothing finished is lost or forgotten is kept, nothing is half done."""

    def __init__(self, action: str) -> None:
        self.action = action

    def prepare(self, folder: Path) -> None:
        filled(folder / "memory")
        with Memory(folder / "memory", PIPELINE) as memory:
            memory.feedback({"session": "secret", "turns": [0]}, useful=True, now="2023-01-03")

    def act(self, folder: Path) -> None:
        with Memory(folder / "memory", PIPELINE) as memory:
            if self.action == "backup":
                memory.backup(folder / "copy")
            elif self.action in CHANGES:
                CHANGES[self.action][0](memory)
            else:
                FORGETTING[self.action](memory)

    def check(self, folder: Path, done: bool) -> None:
        with Memory(folder / "memory", PIPELINE) as memory:
            listed = memory.list(versions=True)
            votes, accesses = content_of(memory).votes.frame(), content_of(memory).accesses.frame()
        names, held = listed["name"].drop_nulls().to_list(), everything(folder / "memory")
        assert {"kept", "also kept"} <= set(names)
        assert b"Oslo" in held
        assert any(WORDS.vector(text).tobytes() in held for text in ("user: I live in Oslo.", "I live in Oslo."))
        if self.action == "backup":
            assert (folder / "copy").exists() or not done
            if (folder / "copy").exists():
                assert verify(folder / "copy" / "store") == []
                with Memory(folder / "copy", PIPELINE) as copy:
                    assert copy.list(versions=True).equals(listed)
                    assert content_of(copy).votes.frame().equals(votes)
        elif self.action in CHANGES:
            added = [listed.height - 3, listed["newer"].count(), listed["deprecated"].sum(), votes.height - 1]
            assert added in ([CHANGES[self.action][1]] if done else [[0, 0, 0, 0], CHANGES[self.action][1]])
        else:
            assert self.action != "replace" or names.count("secret") == 1
            self.check_forgotten([1 in rows["session"] for rows in (listed, votes, accesses)], held, done)

    def check_forgotten(self, rows: list[bool], held: bytes, done: bool) -> None:
        """Raise AssertionError unless the session is there whole, or nothing of it is."""
        there = rows[0]
        assert not (done and there)
        tokens = np.concatenate([rows for _, _, (rows,) in TokenWords().token_vectors([SECRET], "document")])
        vectors = [WORDS.vector(text) for text in (SECRET, f"user: {SECRET}")]
        secret = [SECRET.encode() in held, any(vector.tobytes() in held for vector in tokens),
                  any(vector.tobytes() in held for vector in vectors), *rows]
        assert secret == [there] * 6


class Experiment:
    """A run of one arm, beside an arm that has finished."""

    def line(self, folder: Path, k: int) -> list[str]:
        return words(folder, f"rank.select.k={k}", f"name=k{k}")

    def prepare(self, folder: Path) -> None:
        assert command(self.line(folder, 3)) == (0, "")

    def act(self, folder: Path) -> None:
        status, traceback = command(self.line(folder, 5))
        assert not traceback, traceback
        if status:
            raise MemlabError("the run ended early")

    def check(self, folder: Path, done: bool) -> None:
        place = folder / "runs" / "single" / "synthetic"
        arms = [read_arm(path.parent) for path in place.glob("*/manifest.json")]  # verifies the digest of each file
        names = {arm.name for arm in arms}
        assert "k3" in names
        assert not done or "k5" in names
        before = place / "report.html"
        assert before.read_text("utf-8").rstrip().endswith("</html>")
        json.loads((place / "comparison.json").read_text("utf-8"))
        assert command(self.line(folder, 5)) == (0, "")
        found = next(read_arm(path.parent) for path in place.glob("k5-*/manifest.json"))
        assert found.questions.height == 16
        assert set(json.loads((place / "comparison.json").read_text("utf-8"))["arms"]) >= {"k5"}


class Report:
    """The report of two arms, where there is one of the first."""

    def place(self, folder: Path) -> Path:
        return folder / "runs" / "single" / "synthetic"

    def prepare(self, folder: Path) -> None:
        for k in (3, 5):
            assert command(words(folder, f"rank.select.k={k}", f"name=k{k}")) == (0, "")

    def act(self, folder: Path) -> None:
        build(self.place(folder), expected=["k3", "k5"])

    def check(self, folder: Path, done: bool) -> None:
        place = self.place(folder)
        assert (place / "report.html").read_text("utf-8").rstrip().endswith("</html>")
        assert (place / "report.md").read_text("utf-8").endswith("\n")
        arms = json.loads((place / "comparison.json").read_text("utf-8"))["arms"]
        assert not done or set(arms) == {"k3", "k5"}
        again = build(place, expected=["k3", "k5"]).comparison
        assert set(again["arms"]) == {"k3", "k5"}
        assert json.loads((place / "comparison.json").read_text("utf-8")) == again


class Vectors:
    """Vectors of new texts in a store that has those of others."""

    def prepare(self, folder: Path) -> None:
        Store(folder / "store", flush_seconds=0).vectors(DigestEmbedder(), some_texts(30), "document")

    def act(self, folder: Path) -> None:
        Store(folder / "store", flush_seconds=0).vectors(DigestEmbedder(), some_texts(60), "document")

    def check(self, folder: Path, done: bool) -> None:
        assert verify(folder / "store") == []
        embedder, texts, store = DigestEmbedder(), some_texts(60), Store(folder / "store")
        missing = store.missing(embedder, texts, "document")
        np.testing.assert_array_equal(store.vectors(embedder, texts, "document"), expected(texts))
        assert len(embedder.asked) == missing  # nothing is made twice
        assert not set(embedder.asked) & set(some_texts(30)["text"])  # what was stored is not computed again
        assert not (done and embedder.asked)


class Replies:
    """Replies of a chat model in a store that has others."""

    def prepare(self, folder: Path) -> None:
        ask(folder, 3)

    def act(self, folder: Path) -> None:
        ask(folder, 6)

    def check(self, folder: Path, done: bool) -> None:
        asked = ask(folder, 6)
        assert not set(asked) & {"0", "1", "2"}
        assert not (done and asked)
        assert ask(folder, 6) == []


def ask(folder: Path, count: int) -> list[str]:
    """Have that many prompts answered; return those that the store had no reply to."""
    chat = ScriptedChat(lambda prompt: f"reply to {prompt.messages[-1].content}")
    prompts = [Prompt((Message("user", str(i)),)) for i in range(count)]
    replies = Store(folder / "store").completions(chat, prompts)
    assert [reply.text for reply in replies] == [f"reply to {i}" for i in range(count)]
    return [prompt.messages[-1].content for prompt in chat.asked]


def command(line: list[str]) -> tuple[int, str]:
    """Run a command line in this process; return its status and the traceback that it printed, or ""."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = run.main(line)
    text = said.getvalue()
    return status, text if "Traceback" in text else ""


SCENARIOS: dict[str, Scenario] = {
    **{f"memory_{action}": LiveMemory(action) for action in (*CHANGES, *FORGETTING, "backup")},
    "run": Experiment(), "report": Report(), "vectors": Vectors(), "replies": Replies()}
