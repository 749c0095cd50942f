"""Training of a model on questions with evidence: ``memlab train NAME ...``.

    memlab train reranker      a cross-encoder that reads question and turn together
    memlab train encoder       token vectors for late interaction
    memlab train ranker        trees over the signals of all retrievers
    memlab train pairs         no model: the examples of a data set, as a file
    memlab train coverage      for every K, the probability that the first K
                               results hold all evidence
    memlab train probability   for every result, the probability that it is
                               evidence

``memlab train NAME --help`` has the settings of each.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from memlab.support.errors import did_you_mean
from memlab.support.help_text import page
from memlab.support.terminal import HELP, print

MODELS = {"reranker": "memlab.learn.reranker", "encoder": "memlab.learn.encoder",
          "ranker": "memlab.learn.ranker.__main__", "pairs": "memlab.learn.sources",
          "coverage": "memlab.learn.coverage", "probability": "memlab.learn.probability"}
"""What is trained -> the module of its command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status, or 2 where it names no model."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in HELP:
        print(page(__doc__))
        return 0
    if words[0] not in MODELS:
        print(f"memlab train: error: there is no '{words[0]}'; {did_you_mean(words[0], MODELS)}", file=sys.stderr)
        return 2
    return int(importlib.import_module(MODELS[words[0]]).main(words[1:]))


if __name__ == "__main__":
    sys.exit(main())
