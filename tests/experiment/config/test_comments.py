from __future__ import annotations

from dataclasses import dataclass

import pytest

from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.comments import body, comment, first_sentence, reasons, run_settings
from memlab.experiment.config.instantiate import CONF
from memlab.experiment.config.overrides import RUN_SETTINGS
from memlab.models.local.embedder import SentenceEmbedder


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


def test_reasons_stand_beside_or_above_a_default_or_in_a_base() -> None:
    assert reasons(Derived) == {"depth": "from the base", "width": "of this class", "height": "a reason on two lines"}
    assert reasons(SentenceEmbedder)["device"] == "every GPU, else the CPU; cuda:1 is that GPU alone"


@pytest.mark.parametrize(("name", "sentence"), [
    ("rank/select/gap", "Adaptive-k (Taguchi et al., EMNLP 2025): cut at the largest drop between consecutive scores."),
    ("exp/adaptive_k", "Does choosing K by question beat one K for all, at the same mean context tokens?"),
    ("arm/ann/flat", "Exact search: every product.")])
def test_the_sentence_about_a_technique_is_the_first_of_its_comment(name: str, sentence: str) -> None:
    assert first_sentence(comment(name, own_choices(CONF)[name])) == sentence


def test_each_choice_has_a_comment_and_what_it_states() -> None:
    for name, choice in own_choices(CONF).items():
        if "/" in name and choice.path.name != "config.yaml":
            assert name.startswith("arm/") or first_sentence(comment(name, choice)), name
            assert name.startswith("arm/") or body(name, choice) or choice.settings == {}, name


def test_every_setting_of_a_run_is_described() -> None:
    assert {setting.name for setting in RUN_SETTINGS} | {"learn.folds", "learn.by"} == {
        line.name for line in run_settings()}
