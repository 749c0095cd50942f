"""The preset of a memory and of a question for which none is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.harness.sweep import preset
from memlab.memory.default import with_system
from memlab.memory.memory import Memory
from memlab.pipeline.stage import spec


@pytest.mark.parametrize(("stored", "system"), [
    ((), "best"), (("tokens",), "best"), (("vectors", "tokens"), "best"), (("vectors",), "plain")])
def test_a_new_memory_is_searched_by_best_and_one_of_the_former_default_stays_with_it(
        tmp_path: Path, stored: tuple[str, ...], system: str) -> None:
    for kind in stored:
        (tmp_path / "store" / kind / "model").mkdir(parents=True)
        (tmp_path / "store" / kind / "model" / "1.segment").touch()
    assert spec(Memory(tmp_path).pipeline) == spec(preset(f"system={system}"))
    assert with_system(["seed=1"], tmp_path) == [f"system={system}", "seed=1"]
    assert with_system(["+exp=hybrid", "seed=1"], tmp_path) == ["+exp=hybrid", "seed=1"]
