"""The systems authors' figures next to the figures of a run: ``memlab experiment systems runs/EXP/DATA``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import cast

from memlab.evaluate.compare import Comparison
from memlab.report.markdown import plain
from memlab.support.errors import MemlabError
from memlab.support.foreign import read_json
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.shell import word
from memlab.support.terminal import print
from systems.published import tables_of


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables of a folder of arms; return 0, or 1 after a message about what is wrong."""
    parser = Parser(prog="memlab experiment systems", description=__doc__)
    parser.add_argument("folder", type=path_argument, help="the folder of a report, with its comparison.json")
    folder = parser.parse_args(argv).folder
    try:
        tables = tables_of(cast(Comparison, read_json(folder / "comparison.json")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(MemlabError(f"comparison.json cannot be read ({type(error).__name__})", where=str(folder),
                          fix=f"make it: memlab report {word(str(folder))}"), file=sys.stderr)
        return 1
    print(*map(plain, tables), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
