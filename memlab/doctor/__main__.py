"""The command ``memlab doctor``: what this machine can run; ``memlab doctor gpu``: whether a card computes well."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Check the machine, or with ``gpu`` as the first word a card; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["gpu"]:
        from memlab.doctor import gpu  # it imports torch

        return gpu.main(words[1:])
    from memlab.doctor import machine

    return machine.main(words)


if __name__ == "__main__":
    raise SystemExit(main())
