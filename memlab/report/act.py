"""Commands that run, ask, compare or extend the arm that a verdict recommends, from what its manifest records."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from memlab.evaluate.compare import Comparison
from memlab.experiment.config.overrides import RUN_SETTINGS, try_parse
from memlab.experiment.harness.results import ArmRun
from memlab.experiment.harness.sweep import OF_RUNS
from memlab.support.shell import setting, word

Commands = list[tuple[str, str]]

_LEFT_OUT = {*OF_RUNS, "store", *(one.name for one in RUN_SETTINGS)} - {"plugins", "conf_dir", "ablate", "seed"}
"""First words of places that say how arms are run and compared."""


def commands_to_offer(comparison: Comparison, arms: Sequence[ArmRun], best: str | None) -> Commands:
    """Return (label, text to copy), by the verdict: use an arm, ask it, compare again, or propose questions.

    ``best`` is the arm that the verdict recommends.
    """
    by_name, found = {arm.name: arm for arm in arms}, comparison["verdict"]
    systems = [arm for arm in arms if not arm.oracle and not arm.name.endswith(".twin")]
    if (whole := comparison["whole"]) and systems:
        return _with_setting(systems, f"{whole['setting']}={whole['advised']}")
    if best:
        return _use(by_name[best])
    if len(systems) == 1:
        return [*_use(systems[0]), *_against_plain(systems[0])]
    first = by_name.get(found["ranking"][0]["arm"]) if found else None
    return [*(_use(first) if first else []), *(_more_questions(systems[0]) if systems else [])]


def _use(arm: ArmRun) -> Commands:
    """Return the commands that run an arm and ask it; none for one made in Python or ranked by another program."""
    if not arm.manifest["command"] or "foreign_run" in arm.settings:
        return []
    data, words = _data_and_rest(arm)
    python = ", ".join(json.dumps(one, ensure_ascii=False) for one in words)
    return [("run it", _command("run", *data, *words)),
            ("in Python", f"from memlab import preset; pipeline = preset({python})"),
            *_ask(arm, data, words)]


def _ask(arm: ArmRun, data: Sequence[str], words: Sequence[str]) -> Commands:
    """Return the command that asks a question; of what is fitted on labels, also those that save its fit and load it.

    What the manifest records of this is described in ``memlab.experiment.harness.manifest.ways_to_ask``.
    """
    question, asking = _short_question(arm), arm.manifest.get("asking") or {"ready": False, "training": []}
    if not question:
        return []
    if not {"system", "exp"} & {*map(_slot, words)}:  # a question has another default than a run
        words = ["system=plain", *words]
    commands = [("ask it", _command("ask", *data, *words, question))] if asking["ready"] else []
    ready = [one for one in words if _slot(one) != "learn"]
    for command, loaded in asking["training"]:
        commands.append(("fit it on these labels", f"memlab train {command} {_shell_words([*data, *ready])}"))
        ready += loaded.split()
    again = [("ask with that fit", _command("ask", *data, *ready, question))] if asking["training"] else []
    return commands + again


def overrides(arm: ArmRun) -> list[str]:
    """Return what an arm's command line and experiment choose and set for it; none if the manifest does not say."""
    listed = arm.manifest.get("overrides")
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _data_and_rest(arm: ArmRun) -> tuple[list[str], list[str]]:
    """Return the overrides that choose the data, and those of the pipeline: the experiment, choices, settings."""
    kept = [one for one in overrides(arm) if _slot(one) not in _LEFT_OUT]
    rest = [one for one in kept if _slot(one) != "data"]
    rest.sort(key=lambda one: (_slot(one) != "exp", "." in one.partition("=")[0]))
    return [one for one in kept if _slot(one) == "data"], rest


def _command(name: str, *words: str) -> str:
    return _shell_words(["memlab", name, *words])


def _shell_words(words: Sequence[str]) -> str:
    """Return the words of a command as a shell takes them; a path with blanks reads as it is.

    >>> print(_shell_words(["data=custom", "data.path='my chats'", "rank.select.k=5"]))
    data=custom 'data.path="my chats"' rank.select.k=5
    """
    return " ".join(word(one) if (path := _path(one)) is None else setting("data.path", path) for one in words)


def _path(override: str) -> str | None:
    """Return the folder or file of data that an override names; None if it names none, or one in terms of others."""
    read = try_parse(override) if override.startswith("data.path=") and "${" not in override else None
    value = read.value() if read else None
    return value if isinstance(value, str) and value else None


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~").replace("/", ".")


def _slot(override: str) -> str:
    return _key(override).partition(".")[0]


def _short_question(arm: ArmRun) -> str:
    """Return a short question of the data, which needs no corpus to be named; "" if there is none."""
    if arm.questions.is_empty():
        return ""
    rows = arm.questions.sort("question").unique("text", keep="none", maintain_order=True)
    texts = [text for text in rows["text"].to_list() if text and text.isprintable() and text[:1].isalpha()
             and "=" not in text]
    return min(texts[:20], key=len, default="")


def _with_setting(arms: Sequence[ArmRun], advised: str) -> Commands:
    """Return the command of a comparison with another setting; none where arms differ in the technique that has it."""
    command = shlex.split(arms[0].manifest["command"])
    selections = {tuple(one for one in overrides(arm) if _key(one) == "rank.select") for arm in arms}
    if not command or len(selections) > 1:
        return []
    kept = [one for one in command if _key(one) != _key(advised)]
    return [("compare again", _shell_words([*kept, advised]))]


def _against_plain(arm: ArmRun) -> Commands:
    """Return the command that compares one system, as it is on its data, with the plain one."""
    data, rest = _data_and_rest(arm)
    name = rest[0].removeprefix("system=") if len(rest) == 1 and rest[0].startswith("system=") else "plain"
    compared = name not in ("plain", "null") and arm.manifest["command"]
    return [("compare it", _command("run", "-m", f"system=plain,{name}", *data))] if compared else []


def _more_questions(arm: ArmRun) -> Commands:
    """Return the command that proposes more questions for data of one's own."""
    words = overrides(arm)
    path = next((path for one in words if (path := _path(one)) is not None), None)
    return [("more questions", f"memlab questions {word(path)}")] if path and "data=custom" in words else []
