from __future__ import annotations

from dataclasses import dataclass

import yaml

from memlab.config.help import help_page, lines_with_reasons, reasons
from memlab.models.local.embedder import SentenceEmbedder
from memlab.rank.select import Gap


@dataclass
class Base:
    depth: int = 3  # from the base
    width: int = 1  # replaced below


@dataclass
class Derived(Base):
    # a reason on
    # two lines
    height: int = 2
    width: int = 4  # of this class
    silent: int = 0
    name: str = "# no comment"


def test_reasons_stand_beside_or_above_a_default_or_in_a_base() -> None:
    assert reasons(Derived) == {"depth": "from the base", "width": "of this class", "height": "a reason on two lines"}
    assert reasons(SentenceEmbedder)["device"] == "every GPU, else the CPU; cuda:1 is that GPU alone"


def test_annotated_settings_are_the_same_yaml() -> None:
    node = {"name": None, "select": {"_target_": "memlab.rank.select.Gap", "buffer": 5}, "empty": {}, "list": [1, "a"],
            "text": "two\nlines", "link": "${chat}", "deep": {"er": {"_target_": "memlab.nowhere.Class", "x": True}}}
    assert yaml.safe_load("\n".join(lines_with_reasons(node))) == node


def test_help_gives_the_reason_of_every_setting_that_has_one() -> None:
    page = help_page(["rank/select=gap"])
    assert f"buffer: 5  # {reasons(Gap)['buffer']}" in page
    assert "device: auto  # every GPU, else the CPU; cuda:1 is that GPU alone" in page
