"""Command-line options of the judge commands: the data, the judge, and the judge's chat model."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memlab.experiment.config.instantiate import choice_settings, make_dataset, options
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import Faults, MemlabError, did_you_mean
from memlab.support.machine import enough_memory
from memlab.support.paths import path_argument
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import safe_text

_FLAGS = {"data": "--data", "data.path": "--path", "judge": "--judge", "chat": "--chat", "judge_chat": "--chat",
          "chat.": "--chat.", "judge_chat.": "--chat.", "judge.": "--judge.",
          "store": "--store", "out": "--out", "seed": "--seed"}
_CHAT = re.compile(r"judge(?:\.judges\[\d+\])?\.chat\.")
_OWN = re.compile(r"^judge\.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what both commands take; :func:`split_fields` reads the fields of judge and chat."""
    parser.add_argument("--data", default="longmemeval_oracle", metavar="NAME",
                        help=f"data set (default longmemeval_oracle); one of {', '.join(options('data'))}")
    parser.add_argument("--path", type=path_argument, help="its file, if it is not where `memlab data fetch` puts it")
    parser.add_argument("--judge", default="official", metavar="NAME",
                        help=f"judge (default official); one of {', '.join(options('judge'))}. Its settings follow as "
                             "--judge.FIELD VALUE, e.g. --judge.max_tokens 4096")
    parser.add_argument("--chat", metavar="NAME",
                        help="chat model of an LLM judge: a file of conf/judge_chat or conf/chat. Its fields follow as "
                             "--chat.FIELD VALUE; --chat.model and --chat.url alone name any OpenAI-compatible server")
    parser.add_argument("--store", type=path_argument, help="folder of stored replies (default $MEMLAB_HOME/store)")


def split_fields(words: Sequence[str], prefix: str) -> tuple[dict[str, str], list[str]]:
    """Split a command line into the fields ``--chat.FIELD VALUE`` or ``--chat.FIELD=VALUE``, and the other words.

    >>> split_fields(["a.jsonl", "--chat.url", "http://127.0.0.1:8000/v1", "--chat.model=qwen", "--data", "locomo"],
    ...              "--chat.")
    ({'url': 'http://127.0.0.1:8000/v1', 'model': 'qwen'}, ['a.jsonl', '--data', 'locomo'])
    """
    fields: dict[str, str] = {}
    others: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith(prefix):
            others.append(word)
        elif not equals and not queue:
            raise MemlabError("a value is missing", where=word, fix=f"write {word} VALUE")
        else:
            fields[name.removeprefix(prefix)] = value if equals else queue.pop(0)
    return fields, others


def run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None,
        work: Callable[[argparse.Namespace, dict[str, str]], int]) -> int:
    """Call ``work(options, chat fields)`` with the parsed command line and return its exit status.

    Settings as ``memlab.run`` takes them (data=locomo data.path=FILE) stand for the flags. A MemlabError is printed to
    standard error without control characters; the status is then 1.
    """
    try:
        words: list[str] = as_flags(sys.argv[1:] if arguments is None else arguments, _FLAGS)
        fields, words = split_fields(words, "--chat.")
        judge_fields, words = split_fields(words, "--judge.")
        with enough_memory("judge a part of the answers at a time"):
            return work(parser.parse_args(words, argparse.Namespace(judge_fields=judge_fields)), fields)
    except MemlabError as fault:
        print(safe_text(fault), file=sys.stderr)
        return 1


def load(name: str, path: Path | None) -> Tables:
    """Load a data set by name."""
    return make_dataset(name, **({} if path is None else {"path": path})).load()


def make_judge(name: str, chat: str | None, fields: Mapping[str, str], own: Mapping[str, str] | None = None) -> Stage:
    """Make a judge of its name: its ``own`` fields, and those of its chat model if it uses one."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from memlab.experiment.config.composition import composition
    from memlab.experiment.config.instantiate import construct

    if name not in options("judge"):
        raise MemlabError(f"there is no judge '{name}'", fix=did_you_mean(name, options("judge")))
    uses_chat = "${judge_chat}" in str(choice_settings(f"judge/{name}"))
    if not uses_chat and (chat is not None or fields):
        raise MemlabError(f"judge '{name}' asks no chat model", fix="leave --chat and --chat.FIELD out")
    try:
        config = OmegaConf.create(composition(None, [f"+judge={name}", *(
            [_chat_override(chat, fields)] if uses_chat else [])]))
        config.merge_with_dotlist([*(f"judge_chat.{field}={value}" for field, value in fields.items()),
                                   *(f"judge.{field}={value}" for field, value in (own or {}).items())])
        plain = OmegaConf.to_container(config.judge, resolve=True)
    except (OmegaConfBaseException, HydraException) as fault:
        raise MemlabError(str(fault).splitlines()[0], where=f"judge={name}") from fault
    faults: list[str] = []
    stage: Stage = construct(plain, "judge", faults)
    if faults:
        raise Faults(dict.fromkeys(_OWN.sub("--judge.", _CHAT.sub("--chat.", fault)) for fault in faults))
    return stage


def _chat_override(name: str | None, fields: Mapping[str, str]) -> str:
    """Return the override that selects the chat model's file in ``conf/judge_chat``, or else in ``conf/chat``."""
    judges, readers = options("judge_chat"), options("chat")
    if name is None and not fields:
        raise MemlabError("this judge asks a chat model, and none is named", where="--chat",
                          fix=f"give --chat NAME ({', '.join(sorted({*judges, *readers}))}), or --chat.model and "
                              "--chat.url; or use a judge by rule, such as --judge f1")
    name = name or "server"
    if name not in {*judges, *readers}:
        raise MemlabError(f"there is no chat model '{name}'", where="--chat",
                          fix=did_you_mean(name, {*judges, *readers}))
    return f"+judge_chat={name}" if name in judges else f"+chat@judge_chat={name}"
