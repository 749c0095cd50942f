from __future__ import annotations

from dataclasses import replace

from memlab.harness.results import ArmRun
from memlab.report import arm_settings


def test_manifests_are_split_into_shared_and_differing(arms: tuple[ArmRun, ...]) -> None:
    shared, differing = arm_settings.manifests(arms)
    assert shared["versions.torch"] == "2.13.0"
    assert set(differing["total_seconds"]) == {arm.name for arm in arms}
    assert not any(name.startswith(("reliability", "constant_k", "importances")) for name in [*shared, *differing])


def test_commands_are_listed_once_in_the_order_of_the_arms(arms: tuple[ArmRun, ...]) -> None:
    lines = ("b", "a", "b", None)
    runs = [replace(arm, manifest={"command": line}) for arm, line in zip(arms, lines)]
    assert arm_settings.commands(runs) == ["b", "a"]
