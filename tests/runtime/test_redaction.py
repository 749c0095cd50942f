from __future__ import annotations

import pytest

from memlab.runtime.redaction import redact


@pytest.mark.parametrize("secret", [
    "Authorization: Bearer SECRETabc", "api_key='SECRETabc'", '"token": "SECRETabc"', "OPENAI_API_KEY=SECRETabc",
    "password: SECRETabc", "https://user:SECRETabc@host/v1", "sk-SECRETabc12345", "hf_SECRETabc12345"])
def test_what_looks_like_a_key_is_blotted_out(secret: str) -> None:
    assert "SECRETabc" not in redact(f"before {secret} after", {})
    assert redact(f"before {secret} after", {}).startswith("before ")


def test_values_of_variables_named_like_keys_are_blotted_out_and_others_are_not() -> None:
    environment = {"WANDB_API_KEY": "swordfish1", "HOME": "somewhere", "MY_TOKEN": "no"}
    assert redact("swordfish1 somewhere no", environment) == "*** somewhere no"


def test_an_ordinary_traceback_stays_as_it_is() -> None:
    text = 'File "a.py", line 3, in run\n    rows = table["key"]\nKeyError: "no column named score"'
    assert redact(text, {}) == text
