from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.support.redaction import redact, redact_tree, remember


@pytest.mark.parametrize("secret", [
    "Authorization: Bearer SECRETabc", "api_key='SECRETabc'", '"token": "SECRETabc"', "OPENAI_API_KEY=SECRETabc",
    "password: SECRETabc", "https://user:SECRETabc@host/v1", "sk-SECRETabc12345", "hf_SECRETabc12345",
    "https://SECRETabc@host/v1", "https://user:SE@SECRETabc@host/v1", "http://host/v1?a=1&api_key=SECRETabc&b=2",
    "http://host/v1?access_token=SECRETabc#top", "http://host/?X-Amz-Signature=SECRETabc", "gsk_SECRETabc12345",
    "eyJSECRETabc1.SECRETabc2.x"])
def test_what_looks_like_a_key_is_blotted_out(secret: str) -> None:
    assert "SECRETabc" not in redact(f"before {secret} after", {})
    assert redact(f"before {secret} after", {}).startswith("before ")
    assert redact(f"before {secret} after", {}).endswith(" after")


def test_values_of_variables_named_like_keys_are_blotted_out_and_others_are_not() -> None:
    environment = {"WANDB_API_KEY": "swordfish1", "HOME": "somewhere", "MY_TOKEN": "no", "KEY_FOLDER": "/usr/keys"}
    assert redact("swordfish1 somewhere no /usr/keys", environment) == "*** somewhere no /usr/keys"


@pytest.mark.parametrize("text", [
    "cannot be read as key=value; quote it", "the wifi password: tulip", "export WANDB_API_KEY=...",
    "export MEMLAB_SERVER_KEY=$(memlab serve key x)", "sha256 " + "ab" * 32])
def test_prose_keeps_what_a_message_or_a_memory_says(text: str) -> None:
    assert redact(text, {}, prose=True) == text


def test_prose_holds_no_key_that_is_given() -> None:
    text = redact("x.api_key=hello99: no such setting; http://me:pw@h/?api_key=abc1234", {}, prose=True)
    assert text == "x.api_key=*** no such setting; http://***@h/?api_key=***"


def test_remembered_values_are_blotted_out_unless_they_are_short_or_paths() -> None:
    remember(["swordfish", "cuda", "/usr/share/x", "swordfish and more"])
    assert redact("swordfish and more, swordfish, cuda, /usr/share/x", {}) == "***, ***, cuda, /usr/share/x"


def test_hashes_of_commits_stay_under_their_own_names_only() -> None:
    commit = "0123456789" * 4
    tree = {"revision": commit, "models": [{"revision": commit}], "other": commit, "script": "ab" * 32}
    assert redact_tree(tree) == tree | {"other": "***"}


def test_a_field_that_is_named_like_a_key_is_blotted_out_whatever_it_holds() -> None:
    assert redact_tree({"api_key": "abc", "key_env": "OPENAI_API_KEY", "max_tokens": 5, "token": ""}) == {
        "api_key": "***", "key_env": "OPENAI_API_KEY", "max_tokens": 5, "token": ""}


KEYS = st.from_regex(r"(sk-|hf_|ghp_|glpat-)[A-Za-z0-9]{12,30}", fullmatch=True)
TREES = st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.text(max_size=8), inner, max_size=3), max_leaves=8)


@given(KEYS, TREES, st.text(alphabet="abc ,:=/\n'\"", max_size=10), st.text(alphabet=" ,:=/\n'\"", max_size=3))
def test_a_key_anywhere_in_a_tree_is_blotted_out(key: str, tree: object, before: str, after: str) -> None:
    text = f"{before} {key}{after}"
    assert key not in repr(redact_tree({"a": [tree, text], text: tree, "b": {"c": text}}))
