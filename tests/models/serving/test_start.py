"""The weights of a server in its record and in the line that a run uses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memlab.models.chat.openai import OpenAIChat
from memlab.models.serving.settings import Settings
from memlab.models.serving.start import _revision_and_folder, overrides
from tests.models.chatserver import publish


def test_quantised_weights_have_a_revision_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "models--m--a" / "refs").mkdir(parents=True)
    (tmp_path / "models--m--a" / "refs" / "main").write_text("abc")
    plain = Settings(model="m/a")
    eight = replace(plain, quantization="fp8_per_tensor")
    assert _revision_and_folder(plain) == ("abc", None)
    assert _revision_and_folder(eight) == ("abc@fp8_per_tensor", None)
    assert _revision_and_folder(replace(eight, model="m/b")) == ("fp8_per_tensor", None)
    assert _revision_and_folder(replace(eight, model=str(tmp_path))) == ("fp8_per_tensor", str(tmp_path))
    line = overrides(publish("http://127.0.0.1:9/v1", revision="abc@fp8_per_tensor"))
    assert "chat.revision=abc@fp8_per_tensor" in line.split()
    sixteen, eight_bits = (OpenAIChat(model="m/a", revision=one).identity() for one in ("abc", "abc@fp8_per_tensor"))
    assert sixteen != eight_bits  # their replies have keys of their own in the store
