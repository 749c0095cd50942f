"""The command ``memlab completion``: a script that completes words with TAB in bash and zsh.

The script holds all words, so that a TAB starts no Python: commands, slots and their techniques, names of settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memlab import __version__
from memlab.__main__ import COMMANDS
from memlab.commands.explain import bare_settings
from memlab.data.chats.schema import BOOK, read_book
from memlab.experiment.config.choices import ARM, GLOBAL, own_choices
from memlab.experiment.config.comments import run_settings
from memlab.experiment.config.instantiate import CONF, options
from memlab.experiment.config.overrides import groups
from memlab.support.help_text import Parser
from memlab.support.terminal import print

ADDED = ("exp", "profile")
"""Slots whose choices are added to the defaults, with a +."""

BEGINS = {"bash": "", "zsh": "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"}
"""Shell -> what its script begins with: zsh reads a script for bash."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the script of a shell."""
    parser = Parser(prog="memlab completion", description="Print the script that completes words with TAB.",
                    epilog="Put this line into ~/.bashrc or ~/.zshrc:\n\n"
                           "    eval \"$(memlab completion bash)\"      (or zsh)\n\n"
                           "The words are those of this version.")
    parser.add_argument("shell", choices=BEGINS)
    print(script(parser.parse_args(argv).shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    slots = {f"{'+' * (slot in ADDED)}{slot}=": options(slot) for slot in groups()
             if slot.partition("/")[0] not in (ARM, "serve")}
    places = {setting.place for choice in own_choices(CONF)
              if "/" in choice and choice.partition("/")[0] not in (ARM, "serve", *GLOBAL)
              for setting in bare_settings(choice)}
    settings = {f"{place}=" for place in (*places, *(line.name for line in run_settings()))}
    words = {"version": [__version__], "commands": COMMANDS, "settings": sorted({*slots, *settings}),
             "choices": sorted(f"{slot}{name}" for slot, names in slots.items() for name in names),
             "formats": sorted(read_book(BOOK).formats)}
    text = Path(__file__).with_suffix(".bash").read_text(encoding="utf-8")
    for mark, filled in words.items():
        text = text.replace(f"@{mark}@", " ".join(filled))
    return BEGINS[shell] + text


if __name__ == "__main__":
    raise SystemExit(main())
