"""The command ``memlab completion``: a script that completes words with TAB in bash, zsh or fish.

The script holds all words, so that a TAB starts no Python: commands, their flags, slots and their techniques, names of
settings and, where they are few, their values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from memlab import __version__
from memlab.__main__ import COMMANDS
from memlab.config.choices import ARM, GLOBAL, own_choices
from memlab.config.comments import run_settings
from memlab.config.explain import bare_settings
from memlab.config.instantiate import CONF, options
from memlab.config.overrides import groups
from memlab.runtime.help_text import Parser
from memlab.runtime.terminal import print

SHELLS = ("bash", "zsh", "fish")

WORDS = {
    "demo": "--no-open",
    "run": "-m --multirun",
    "explain": "",
    "report": "--csv --latex --seed --wandb",
    "import": "--format --out --corpus --split --timezone --dates --max-mb --replace",
    "questions": "--no-browser --chat --depth --limit",
    "data": "list fetch check show --base --path --data --timezone",
    "ask": "corpus= now= memory= timezone= --signals",
    "judge": "data= data.path= --data --path --judge --chat --store --sheet --labels --calibration",
    "train": "reranker encoder merge ranker pairs coverage probability",
    "serve": "list stop key --host --port --env --create-env --detach --device --runner --dtype --max-len "
             "--tensor-parallel --data-parallel --gpu-memory --quantization --kv-cache --revision --timeout "
             "--grace --all",
    "submit": "-m --multirun",
    "status": "--out",
    "store": "info verify compact prune --store --model --older",
    "memory": "backup check export memory= out= --memory --out",
    "mcp": "memory= timezone=",
    "track": "sync --mode --project --entity --texts --tag",
    "score": "--experiment --lint --data --path --ascending --by-rank --ties",
    "experiment": "",
    "doctor": "",
    "completion": " ".join(SHELLS),
}
"""The words of each command that are no settings of a run; --help is one of all."""

OF_RUNS = ("demo", "run", "ask", "train", "submit", "score")
"""Commands that take the settings of a run."""

WITHOUT_FILES = ("explain", "serve", "status", "store", "memory", "doctor", "completion")
"""Commands whose words are no files."""

_KINDS = re.compile(r"[\w.+-]+(?: (?:\||or) [\w.+-]+)+")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the script of a shell."""
    parser = Parser(prog="memlab completion", description="Print the script that completes words with TAB.",
                    epilog="Once:\n\n"
                           "    memlab completion bash >~/.local/share/bash-completion/completions/memlab\n"
                           "    memlab completion zsh >\"${fpath[1]}/_memlab\"\n"
                           "    memlab completion fish >~/.config/fish/completions/memlab.fish\n\n"
                           "For one session: eval \"$(memlab completion bash)\". The words are those of this version.")
    parser.add_argument("shell", choices=SHELLS)
    print(script(parser.parse_args(argv).shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    values, names = _values(), defaultdict[str, list[str]](list)
    for place in sorted(_kinds()):
        names[place.partition(".")[0]].append(f"{place}=")
    for line in run_settings():
        if "." in line.name:
            names[line.name.partition(".")[0]].append(f"{line.name}=")
    slots = sorted(slot for slot in groups() if slot.partition("/")[0] not in (ARM, "exp", "profile", "serve"))
    common = " ".join(["+exp=", "+profile=", *(f"{slot}=" for slot in slots), *(f"{name}." for name in sorted(names)),
                       *(f"{line.name}=" for line in run_settings() if "." not in line.name)])
    words = {name: " ".join(filter(None, [own, common if name in OF_RUNS else "", "--help"]))
             for name, own in WORDS.items()}
    words["explain"] = " ".join([*words["explain"].split(), *_names_to_explain()])
    words["serve"] += " " + " ".join(options("serve"))
    table = _fish if shell == "fish" else _sh
    text = Path(__file__).with_suffix(f".{shell}").read_text(encoding="utf-8")
    for mark, filled in {"version": __version__, "commands": " ".join(COMMANDS),
                         "without_files": " ".join(WITHOUT_FILES), "words": table(words),
                         "values": table(values),
                         "settings": table({name: " ".join(places) for name, places in names.items()})}.items():
        text = text.replace(f"@{mark}@", filled)
    return text


def _values() -> dict[str, str]:
    """Return slot or setting -> its values, where they are known."""
    values = {slot: " ".join(options(slot)) for slot in sorted(groups()) if slot != "serve"}
    values |= {line.name: "true false" for line in run_settings() if line.default in ("true", "false")}
    for place, kind in _kinds().items():
        if kind == "bool":
            values[place] = "true false"
        elif _KINDS.fullmatch(kind) and "|" in kind:
            values[place] = kind.replace(" | ", " ").replace(" or ", " ")
    return values


def _kinds() -> dict[str, str]:
    """Return place -> type of the settings of all techniques."""
    found: dict[str, str] = {}
    for choice in own_choices(CONF):
        if "/" in choice and choice.partition("/")[0] not in (ARM, "serve", *GLOBAL):
            for one in bare_settings(choice):
                if not re.search(r"\.\d", one.place):
                    found.setdefault(one.place, one.kind)
    return found


def _names_to_explain() -> list[str]:
    """Return the names of slots and techniques that are explained."""
    return sorted({*(slot for slot in groups() if not slot.startswith(f"{ARM}/")),
                   *(name for name in own_choices(CONF) if "/" in name and not name.startswith(f"{ARM}/"))})


def _sh(table: Mapping[str, str]) -> str:
    return "\n".join(f"    {name}) echo '{words}';;" for name, words in table.items())


def _fish(table: Mapping[str, str]) -> str:
    return "\n".join(f"        case {name}\n            echo '{words}'" for name, words in table.items())


if __name__ == "__main__":
    raise SystemExit(main())
