"""Words to copy that act on a verdict: the overrides of an arm, its pipeline in Python, and a question asked of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from memlab.config.instantiate import CONF
from memlab.config.overrides import RUN_SETTINGS, try_parse
from memlab.errors import MemlabError
from memlab.evaluate.compare import Comparison
from memlab.harness.results import ArmRun
from memlab.harness.sweep import OF_RUNS, preset, read
from memlab.learn.probability import LoadedProbability
from memlab.live.results import without_judges
from memlab.models.protocols import parts
from memlab.pipeline import Pipeline
from memlab.report.opening import arm_to_offer, chosen, too_easy
from memlab.runtime.foreign import read_yaml
from memlab.runtime.shell import setting, word
from memlab.stage import label_free, learns, spec_digest

Act = list[tuple[str, str]]

_KEPT = ("plugins", "conf_dir", "ablate", "seed")
_RUNS = {*OF_RUNS, "exp", "store", *(one.name for one in RUN_SETTINGS)} - {*_KEPT}
"""First words of places that say how arms are run and compared; the data have words of their own."""


def act(comparison: Comparison, arms: Sequence[ArmRun]) -> Act:
    """Return (label, text) of what to copy, by the verdict: use an arm, ask it, compare again, or mark questions."""
    by_name = {arm.name: arm for arm in arms}
    found, systems = comparison["verdict"], [arm for arm in arms if not arm.oracle and not arm.name.endswith(".twin")]
    if (whole := comparison["whole"]) and systems:
        return _again(systems, f"{whole['setting']}={whole['advised']}")
    easy = too_easy(comparison)
    again = _again(systems, easy) if easy else []
    if best := by_name.get(chosen(comparison) or ""):
        return [*_use(best), *again]
    if len(systems) == 1:
        return [*_use(systems[0]), *_with_plain(systems[0])]
    level = by_name.get(arm_to_offer(found)["arm"]) if found else None
    return [*(_use(level) if level else []), *again, *(_more_questions(systems[0]) if systems else [])]


def _use(arm: ArmRun) -> Act:
    """Return the words that give an arm's pipeline elsewhere: its own, or with its experiment's settings, or with all.

    None where no words do, as for one made in Python, or after a change of a plug-in or of a file of settings.
    """
    given, name, wanted = overrides(arm), arm.manifest["experiment"], spec_digest(arm.manifest["pipeline"])
    stated = {_key(word) for word in given}
    more = [word for word in settings(_experiment(name)) if _key(word) not in stated]
    data = [word for word in (*given, *more) if _slot(word) == "data"]
    own, added = ([word for word in words if _slot(word) not in {*_RUNS, "data"}] for words in (given, more))
    for words in (own, [*own, *added], [f"+exp={name}", *own]) if arm.manifest["command"] else ():
        with suppress(MemlabError):
            pipeline = preset(*words)
            if spec_digest(pipeline) == wanted:
                words = sorted(words, key=lambda word: "." in word.partition("=")[0])  # choices, then their settings
                python = ", ".join(json.dumps(word, ensure_ascii=False) for word in words)
                return [("run it", _shell_words(["memlab", "run", *data, *words])),
                        ("in Python", f"from memlab import preset; pipeline = preset({python})"),
                        *_ask(arm, pipeline, data, words)]
    return []


def _ask(arm: ArmRun, pipeline: Pipeline, data: Sequence[str], words: Sequence[str]) -> Act:
    """Return the line that asks a question; of what is fitted on labels, also those that save its fit and load it.

    None where something is fitted on labels and no command saves its fit.
    """
    lines, question = [], _own_question(arm)
    if not question:
        return []
    with suppress(MemlabError):
        for saved in parts(without_judges(pipeline).select, LoadedProbability):
            saved.fit_of(arm.manifest.get("ranked_by", ()))
        lines.append(("ask it", _shell_words(["memlab", "ask", *data, *words, question])))
    fitted: list[Any] = [stage for _, stage in pipeline.stages() if learns(stage)]
    if not fitted or not all(label_free(stage) for stage in fitted):
        return lines
    ready = [word for word in words if _slot(word) != "learn"]
    for stage in fitted:
        command, loaded = stage.training
        lines.append(("fit it on these labels", f"memlab train {command} {_shell_words([*data, *ready])}"))
        ready += loaded.split()
    return [*lines, ("ask with that fit", _shell_words(["memlab", "ask", *data, *ready, question]))]


def overrides(arm: ArmRun) -> list[str]:
    """Return what an arm's command line and experiment choose and set for it; none if the manifest does not say."""
    listed = arm.manifest.get("overrides")
    return [word for word in listed if isinstance(word, str)] if isinstance(listed, list) else []


def settings(content: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield what an experiment's file chooses and sets, as overrides.

    >>> list(settings({"defaults": [{"override /rank/select": "budget"}], "rank": {"select": {"tokens": 1000}}}))
    ['rank/select=budget', 'rank.select.tokens=1000']
    """
    for key, value in content.items():
        if key == "defaults" and not place:
            yield from (f"{name.partition('/')[2]}={choice}" for entry in value if isinstance(entry, dict)
                        for name, choice in entry.items() if str(name).startswith("override /"))
        elif isinstance(value, dict):
            yield from settings(value, f"{place}{key}.")
        elif key != "arms" and not isinstance(value, list):
            yield f"{place}{key}={json.dumps(value) if not isinstance(value, str) else value}"


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


def _experiment(name: str) -> Mapping[str, Any]:
    """Return the content of an experiment's file; empty for one that memlab does not have."""
    with suppress(OSError, ValueError):
        content = read_yaml(CONF / "exp" / f"{name}.yaml") if name.replace("_", "").isalnum() else {}
        return content if isinstance(content, dict) else {}
    return {}


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~").replace("/", ".")


def _slot(word: str) -> str:
    return _key(word).partition(".")[0]


def _own_question(arm: ArmRun) -> str:
    """Return a short question of the data, which needs no corpus to be named; "" if there is none."""
    if arm.questions.is_empty():
        return ""
    rows = arm.questions.sort("question").unique("text", keep="none", maintain_order=True)
    texts = [text for text in rows["text"].to_list() if text and text.isprintable() and text[:1].isalpha()
             and "=" not in text]
    return min(texts[:20], key=len, default="")


def _again(arms: Sequence[ArmRun], setting_to_try: str) -> Act:
    """Return the command of a comparison with another setting; none where arms differ in the technique that has it."""
    command = shlex.split(arms[0].manifest["command"])
    swept = {tuple(w for w in overrides(arm) if _key(w) == "rank.select") for arm in arms}
    if not command or len(swept) > 1:
        return []
    kept = [w for w in command if _key(w) != _key(setting_to_try)]
    return [("compare again", f"{_shell_words(kept)} {_shell_words([setting_to_try])}")]


def _with_plain(arm: ArmRun) -> Act:
    """Return the command that compares one system with the plain one."""
    command, words = shlex.split(arm.manifest["command"]), overrides(arm)
    system = next((w for w in words if w.startswith("system=")), "system=null")
    if not command or system == "system=plain" or "=" in system.removeprefix("system=") or system not in command:
        return []
    other = [f"system=plain,{system.removeprefix('system=')}" if word == system else word for word in command]
    with suppress(MemlabError):  # the other words may belong to the system alone
        read([word for word in other[2:] if word != "-m"], multirun=True)
        return [("compare it", _shell_words(other).replace("memlab run", "memlab run -m", 1).replace("-m -m", "-m"))]
    return []


def _more_questions(arm: ArmRun) -> Act:
    """Return the command that proposes more questions for data of one's own."""
    words = overrides(arm)
    path = next((path for one in words if (path := _path(one)) is not None), None)
    return [("more questions", f"memlab questions {word(path)}")] if path and "data=custom" in words else []
