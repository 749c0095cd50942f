"""Merge trained updates into one: ``memlab experiment encoder_training merge --help`` tells how."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from encoder_training import merge


def main(argv: Sequence[str] | None = None) -> int:
    """Merge updates; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return merge.main(words[1:] if words[:1] == ["merge"] else words)


if __name__ == "__main__":
    sys.exit(main())
