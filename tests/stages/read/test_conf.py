"""Every technique of read makes its part, with settings that its class knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.experiment.config.instantiate import choice_settings, construct, with_defaults
from memlab.models.chat.openai import OpenAIChat
from memlab.pipeline.question_types import VOCABULARY
from memlab.pipeline.stage import Stage, declaration
from memlab.pipeline.token_counter import TokenCounter
from memlab.stages.read.prompt import PromptRouter, PromptTemplate, RoutedPrompts
from memlab.stages.read.reader import Vote
from tests.chats import ScriptedChat
from tests.choices import choices_of, comment, names_of
from tests.stages.read.tiny import tokenizer
from tests.stages.search.world import WordEmbedder

KINDS = {"prompt": PromptTemplate, "vote": Vote, "agents": PromptRouter, "tokens": TokenCounter}
LADDER = ("v1_plain", "v1_reasoned", "v1_enumerated", "rag_v1")


def load(choice: str) -> dict:
    """The choice's values; what it takes from elsewhere, taken from the simplest choice there."""
    given = {name: with_defaults(choice_settings(f"read/{name}/{simplest}")) for name, simplest in
             (("measure", "unit"), ("prompt", "direct"), ("vote", "single"), ("agents", "one"))}
    whole = OmegaConf.create({"read": given, "chat": "CHAT", "embedder": "EMBEDDER", "this": choice_settings(choice)})
    return OmegaConf.to_container(whole, resolve=True)["this"]  # type: ignore[index, call-overload, return-value]


def prompt(name: str) -> PromptTemplate:
    return construct(load(f"read/prompt/{name}"), "read.prompt", [])


@pytest.mark.parametrize("choice", choices_of("read"))
def test_a_choice_makes_its_part_with_settings_of_its_class(choice: str, tmp_path: Path) -> None:
    slot, values, faults = choice.split("/")[1], load(choice), list[str]()
    if values.get("chat") == "CHAT":
        own = OpenAIChat(model="m", tokenizer=tokenizer(tmp_path))
        values["chat"] = own if slot == "tokens" else ScriptedChat(str)
    if "embedder" in values:
        values["embedder"] = WordEmbedder()
    made = construct(values, "read", faults)
    assert not faults
    assert {f.name for f in dataclasses.fields(made)} >= set(values) - {"_target_"}
    assert isinstance(made, KINDS.get(slot, Stage))
    assert comment(choice)
    if slot == "pack":
        assert comment(choice).startswith(("ORACLE", "TAINTED")) == bool(declaration(made).sees)


def test_the_ladder_only_adds() -> None:
    rules = [[line for line in prompt(name).instructions.splitlines() if line.startswith("- ")] for name in LADDER]
    assert [len(r) for r in rules] == [0, 3, 4, 5]
    for short, long in zip(rules, rules[1:]):
        assert long[: len(short)] == short
    assert len({prompt(name).system for name in LADDER}) == 1


def test_no_two_prompts_say_the_same() -> None:
    names = names_of("read/prompt")
    assert len({repr(prompt(name)) for name in names}) == len(names) == 13


def test_chain_of_note_is_for_complex_questions_alone() -> None:
    agents = construct(load("read/agents/chain_of_note"), "read.agents", [])
    direct, notes = prompt("direct"), prompt("chain_of_note")
    assert {kind for kind in VOCABULARY if agents.template(kind, direct) == notes} == {
        "counting", "multi_session", "temporal"}
    assert agents.template("", direct) is agents.template("factual", direct) is direct


@pytest.mark.parametrize(("name", "rules"), [
    ("v1_reasoned", ("from today's date", "both dates", "the latest day holds", "likes, habits")),
    ("v1_enumerated", ("never estimate", "go through all that you remember", "list every item with its date")),
    ("rag_v1", ("from today's date", "never estimate", "the latest day holds", "likes, habits",
                "follow relationships from one to the next")),
    ("memorystack", ("these memories alone", "name each item that counts", "names, dates, amounts, brands, scales",
                     "the memory with the latest date is right", "only where not a single memory has to do with"))])
def test_the_prompts_of_a_system_have_its_rules(name: str, rules: tuple[str, ...]) -> None:
    text = " ".join(prompt(name).instructions.split())
    assert [rule for rule in rules if rule not in text] == []


def test_specialists_reason_before_they_answer() -> None:
    routed = construct(load("read/agents/routed"), "read.agents", [])
    assert isinstance(routed, RoutedPrompts)
    assert routed.counting != routed.temporal
    assert routed.counting.answer_mark == routed.temporal.answer_mark == "Answer:"
