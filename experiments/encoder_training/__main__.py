"""Merge trained updates into one: ``memlab experiment encoder_training merge --help`` tells how."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from encoder_training import merge
from memlab.support.help_text import Parser


def main(argv: Sequence[str] | None = None) -> int:
    """Merge updates; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = Parser(prog="memlab experiment encoder_training", description="Trained updates as one: merge --help")
    parser.add_argument("command", choices=["merge"])
    parser.parse_args(words[:1])
    return merge.main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
