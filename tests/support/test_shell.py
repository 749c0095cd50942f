"""Printed words: the shell and Hydra's grammar give back what was meant."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from memlab.experiment.config.overrides import parse
from memlab.support.shell import data_path, setting, word

ODD = ["my chats", "a,b", "a=b", "[x]", "{a: b}", "(x)", "it's", 'say "hi"', "back\\slash", "end\\", 'end\\"', "täg",
       "日本", "${x}", "\\${x}", "\\\\${x}", "a${b", "$x", "2024", "1e5", ".5", "true", "null", "NaN", "#x", "!x",
       "a;b", "&", "`x`", "a%b", "*", " ", "", "x ", "+a", "~", "-x", "a:b", "a@b", "😀", "'\"\\", "a|b>c"]


def read(argument: str) -> str:
    """Return the value of a setting as a configuration has it."""
    override = parse(argument)
    assert override.key_or_group == "data.path"
    return str(OmegaConf.create({"path": override.value()}).path)


@pytest.mark.parametrize("value", ODD)
def test_odd_values_come_back(value: str) -> None:
    (argument,) = shlex.split(setting("data.path", value))
    assert read(argument) == value


@given(st.text(st.sampled_from("ab1 ,=[]{}()'\"\\$:#~&;`*!?.-+é")))
def test_any_value_comes_back(value: str) -> None:
    assume(value != "???")  # to OmegaConf a setting without a value
    (argument,) = shlex.split(setting("data.path", value))
    assert read(argument) == value


@pytest.mark.parametrize("folder", ["???", "~", "~me"])
def test_folders_that_would_mean_something_else_are_written_from_here(folder: str) -> None:
    (argument,) = shlex.split(data_path(folder))
    assert read(argument) == f"./{folder}"


def test_plain_values_are_not_quoted() -> None:
    for value in ("chats-chatgpt", "/tmp/my_chats", "../x", "./x.y", "Qwen/Qwen3:latest", "http://127.0.0.1:80/v1"):
        assert setting("data.path", value) == f"data.path={value}"


@pytest.mark.parametrize("value", ["a\nb", "a\x1b[2Jb", "a\u202eb", "it's\x07\\"])
def test_what_a_terminal_would_not_show_is_pasted_as_bytes(value: str) -> None:
    shown = word(value)
    assert shown.isascii()
    assert shown.isprintable()
    pasted = subprocess.run(["bash", "-c", f"printf %s {shown}"], capture_output=True, check=True)
    assert pasted.stdout.decode() == value
