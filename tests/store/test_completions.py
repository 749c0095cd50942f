"""Completions in the store: asked once, kept whatever happens, and given back as they were said."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.commands.store import info, main, prune, verify
from memlab.models.chat.openai import OpenAIChat
from memlab.models.protocols import Completion, Message, Prompt
from memlab.pipeline.tables import Notes
from memlab.store import Store
from memlab.store.completions import decode, encode, lines
from memlab.support.errors import MemlabError
from memlab.support.files import decode_line, encode_line
from tests.chats import ScriptedChat
from tests.models.chatserver import serving


def prompt(text: str, **fields: int) -> Prompt:
    return Prompt((Message("user", text),), **fields)


def prompts(count: int) -> list[Prompt]:
    return [prompt(f"question {i}") for i in range(count)]


def scripted(name: str = "scripted", answer: str = "answer to") -> ScriptedChat:
    return ScriptedChat(lambda p: f"{answer} {p.messages[-1].content}", name=name)


def files(root: Path) -> list[Path]:
    return sorted(root.glob("completions/*/*.jsonl"))


def test_what_was_said_once_is_not_asked_again(tmp_path: Path) -> None:
    chat, store = scripted(), Store(tmp_path)
    asked = [*prompts(5), prompt("question 0"), prompt("question 0", sample=1)]
    first = store.completions(chat, asked)
    assert [c.text for c in first] == [f"answer to {p.messages[0].content}" for p in asked]
    assert (len(chat.asked), store.made["completions"], store.found["completions"]) == (6, 6, 0)
    for again in (store, Store(tmp_path)):
        assert again.completions(chat, asked[::-1]) == first[::-1]
    assert len(chat.asked) == 6
    assert (again.made["completions"], again.found["completions"]) == (0, 7)
    assert store.completions(chat, []) == []


@given(st.text())
def test_every_character_survives_a_line(text: str) -> None:
    completion = Completion(text, 1, 2, 0.25, "length", True)
    line = encode("k", completion)
    assert line.count(b"\n") == 1
    assert decode(line) == ("k", completion)
    assert decode(line[:-1]) is None


def test_a_refusal_is_not_stored(tmp_path: Path) -> None:
    chat, store = scripted(), Store(tmp_path)
    long = prompt("long " * 5000)
    for _ in range(2):
        one, other = store.completions(chat, [long, prompt("question 1")])
        assert (one.finish, other.text) == ("refused", "answer to question 1")
    assert (store.made["completions"], store.found["completions"]) == (1, 1)


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    Store(tmp_path).completions(scripted(), prompts(3))
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-9])
    chat, store = scripted(), Store(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(store.completions(chat, prompts(3))) == 3
    assert (len(chat.asked), store.found["completions"]) == (1, 2)
    assert verify(tmp_path) == []


def damage(file: Path, line: int) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"answer", b"Answer")
    file.write_bytes(b"".join(lines))


def test_a_damaged_line_is_named_and_asked_for_again(tmp_path: Path) -> None:
    want = Store(tmp_path).completions(scripted(), prompts(3))
    (file,) = files(tmp_path)
    damage(file, 1)
    chat, store = scripted(), Store(tmp_path)
    with pytest.warns(UserWarning, match=f"{file.name}: the bytes of 1 line do not match"):
        assert store.completions(chat, prompts(3)) == want
    assert len(chat.asked) == 1


def test_another_process_s_replies_are_noticed_and_the_first_file_counts(tmp_path: Path) -> None:
    reader, asker = Store(tmp_path), scripted()
    reader.completions(asker, prompts(1))
    Store(tmp_path).completions(scripted(), prompts(3))
    reader.completions(asker, prompts(3))
    assert len(asker.asked) == 1
    folder = files(tmp_path)[0].parent
    for name, text in (("0-a", "first"), ("9999999-z", "last")):
        (folder / f"{name}.jsonl").write_bytes(encode(prompts(1)[0].key(), Completion(text, 1, 1, 0.0)))
    assert Store(tmp_path).completions(asker, prompts(1))[0].text == "first"


def begin(script: str, *words: object) -> subprocess.Popen[str]:
    head = ("import sys; from pathlib import Path; from memlab.models.chat.openai import OpenAIChat\n"
            "from memlab.store import Store; from tests.store.test_completions import prompts, scripted\n")
    return subprocess.Popen([sys.executable, "-c", head + script, *map(str, words)], text=True,
                            cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)


def test_an_error_or_an_interrupt_keeps_what_came_before(tmp_path: Path) -> None:
    def stumbling(problem: BaseException) -> ScriptedChat:
        def rule(p: Prompt) -> str:
            if p.messages[0].content == "question 3":
                raise problem
            return f"answer to {p.messages[0].content}"
        return ScriptedChat(rule)

    for problem in (MemlabError("away"), KeyboardInterrupt()):
        with pytest.raises(type(problem)):
            Store(tmp_path).completions(stumbling(problem), prompts(10))
    chat = scripted()
    Store(tmp_path).completions(chat, prompts(10))
    assert [p.messages[0].content for p in chat.asked] == [f"question {i}" for i in (3, 2, 1, 0)]


def test_a_chat_that_leaves_a_prompt_out_is_told(tmp_path: Path) -> None:
    class Silent(ScriptedChat):
        def complete(self, prompts):
            yield from list(super().complete(prompts))[1:]

    with pytest.raises(MemlabError, match="scripted gave nothing for 1 of 3 prompts"):
        Store(tmp_path).completions(Silent(lambda _: "x"), prompts(3))


ASK = """
Store(Path(sys.argv[1])).completions(OpenAIChat(model="tiny", url=sys.argv[2], concurrency=4), prompts(60))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_repeats_no_finished_request(tmp_path: Path, how: signal.Signals) -> None:
    with serving() as server:
        server.gate = lambda number: number <= 12
        run = begin(ASK, tmp_path, server.url)
        end = time.monotonic() + 120
        while sum(1 for file in files(tmp_path) for _ in lines(file)) < 12:
            assert time.monotonic() < end, "12 replies are not stored"
            time.sleep(0.01)
        os.kill(run.pid, how)
        run.communicate(timeout=50)  # at once, not when the next reply comes
        server.gate = None
        server.wait_until_left()
        sent = len(server.requests)
        store = Store(tmp_path)
        found = store.completions(OpenAIChat(model="tiny", url=server.url), prompts(60))
        assert [c.text for c in found] == [f"You said: question {i}" for i in range(60)]
        assert store.found["completions"] == 12 >= sent - 4  # besides what was under way
        assert len(server.requests) == sent + 60 - 12


def test_upkeep_lists_checks_and_mends_completions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path).completions(scripted(), prompts(3))
    (file,) = files(tmp_path)
    row = info(tmp_path).row(0, named=True)
    assert (row["kind"], row["model"], row["rows"], row["segments"]) == ("completions", "scripted", 3, 1)
    assert row["bytes"] == file.stat().st_size
    assert main(["verify", "--store", str(tmp_path)]) == 0
    damage(file, 0)
    assert main(["verify", "--store", str(tmp_path)]) == 1
    assert f"damaged: {file}" in capsys.readouterr().out
    assert prune(tmp_path) == []  # its process may be writing to it
    os.utime(file, (time.time() - 7200,) * 2)
    assert prune(tmp_path) == [file]
    assert (verify(tmp_path), info(tmp_path)["rows"].item()) == ([], 2)
    chat = scripted()
    Store(tmp_path).completions(chat, prompts(3))
    assert len(chat.asked) == 1
    assert len(prune(tmp_path, model="scripted")) == 1
    assert info(tmp_path).is_empty()


def test_what_was_refused_cut_off_and_mended_is_noted(tmp_path: Path) -> None:
    class Odd(ScriptedChat):
        def complete(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
            yield 0, Completion("", 0, 0, 0.0, "refused")
            yield 1, Completion("The", 1, 1, 0.1, "length")
            yield 2, Completion("{}", 1, 1, 0.1, repaired=True)
            yield 3, Completion("all well", 1, 1, 0.1)

    asked, notes, again = prompts(4), Notes(), Notes()
    Store(tmp_path).completions(Odd(lambda p: "", name="odd"), asked, notes)
    assert {what.split()[3]: counts for what, *counts in notes.table().rows()} == dict.fromkeys(
        ("refused,", "cut", "to"), [1, 4])
    Store(tmp_path).completions(scripted("odd"), asked[1:3], again)  # found: the same is known of it
    assert again.table()["number"].to_list() == [1, 1]


def test_a_line_with_a_further_field_is_read_and_an_impossible_one_is_passed_over() -> None:
    reply = Completion("Tom", 3, 2, 0.5)
    row = decode_line(encode("k", reply))
    assert row is not None
    assert decode(encode_line({**row, "cost": 0.1})) == ("k", reply)
    for change in ({"prompt_tokens": 10**30}, {"completion_tokens": -1}, {"text": None}, {"prompt_tokens": "many"},
                   {"prompt_tokens": 0.5}, {"completion_tokens": True}, {"text": "\ud800"}, {"seconds": "long"},
                   {"seconds": math.nan}, {"finish": ["stop"]}, {"repaired": 2}, {"logprob": "low"},
                   {"logprob": math.inf}, {"logprob": ""}, {"logprob": False}, {"key": 3}):
        assert decode(encode_line({**row, **change})) is None
    assert decode(encode_line({"key": "k"})) is None
