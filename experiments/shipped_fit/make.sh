#!/usr/bin/env bash
# Make the fit of system=best that memlab ships (rank.score.model=shipped) from nothing:
#   experiments/shipped_fit/make.sh FRIENDSQA LONGMEMEVAL_S OUT
# The first is the repository's folder dat, the second the dev slice of LongMemEval-S (151 questions), OUT a folder.
# FriendsQA is ranked with MiniLM as it is, since minilm_memory has learned its labels.
set -euo pipefail
[ $# -eq 3 ] || { sed -n 2,4p "$0" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
PYTHONPATH=$(dirname "$here") python "$here/talk.py" friendsqa "$1" "$3/friendsqa"
python - "$3/ranker.json" data=custom data.path="$3/friendsqa" embedder=minilm data=longmemeval_s data.path="$2" \
  data=synthetic <<'FIT'
import sys
from pathlib import Path
from memlab.learn.ranker.__main__ import RankerRecipe, fit_all
out, *words = sys.argv[1:]
at = [place for place, word in enumerate(words) if word.startswith("data=")]
print(fit_all(RankerRecipe(out=Path(out)), [words[start:end] for start, end in zip(at, [*at[1:], len(words)])]))
FIT
sha256sum "$3/ranker.json"
