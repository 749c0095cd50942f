"""Former name of the command ``python -m memlab.learn.coverage``."""

import sys

from memlab.learn.coverage.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
