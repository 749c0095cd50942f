#!/usr/bin/env bash
# Make the fit of system=best that memlab ships (rank.score.model=shipped) from nothing:
#   experiments/shipped_fit/make.sh FRIENDSQA LONGMEMEVAL_S MOLWENI OUT
# The folder dat of FriendsQA's repository, the dev slice of LongMemEval-S (151 questions), Molweni's file
# MRC(withDiscourse)/test.json, and a folder to write to. FriendsQA is ranked with MiniLM as it is, since minilm_memory has
# learned its labels.
set -euo pipefail
[ $# -eq 4 ] || { sed -n 2,6p "$0" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
export PYTHONPATH=$(dirname "$here")
python "$here/talk.py" friendsqa "$1" "$4/friendsqa"
python "$here/talk.py" molweni "$3" "$4/molweni"
python - "$4/ranker.json" rank.score.recipe.home=false data=custom data.path="$4/friendsqa" embedder=minilm \
  data=longmemeval_s data.path="$2" data=custom data.path="$4/molweni" data=synthetic <<'FIT'
import sys
from pathlib import Path

from memlab.learn.ranker.__main__ import RankerRecipe, fit_all
from shipped_fit.carry_over import parts

out, *words = sys.argv[1:]
print(fit_all(RankerRecipe(out=Path(out)), parts(words)))
FIT
sha256sum "$4/ranker.json"
