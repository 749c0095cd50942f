#!/usr/bin/env bash
# The GPU profile from texts to a ranking, with random weights of full size in the place of the two BAAI models:
#   experiments/gpu/profile.sh data=locomo data.path=FILE [word ...]
set -euo pipefail
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
python3 - "$models" <<'PYTHON'
import sys
from pathlib import Path

from experiments.gpu import random_models
from memlab.models.local.backend import resolve

device = resolve("auto", "auto", "auto").devices[0]
shape = random_models.TINY if device == "cpu" else random_models.LARGE
random_models.save_encoder(Path(sys.argv[1]) / "encoder", shape, device)
random_models.save_reranker(Path(sys.argv[1]) / "reranker", shape, device)
PYTHON
words=(+profile=gpu "embedder.path=$models/encoder" "cross_encoder.path=$models/reranker" search/late=late_idf
       read/answer=none judge=none track=none "out=$models/runs" "store=$models/store" "$@")
python3 -m memlab run "${words[@]}" plan=true
python3 -m memlab run "${words[@]}"
python3 - "$models" <<'PYTHON'
import json
import sys
from pathlib import Path

for file in Path(sys.argv[1]).rglob("manifest.json"):
    manifest = json.loads(file.read_text())
    print("seconds:", manifest["seconds"], "made:", manifest["made"], "hardware:", manifest["hardware"])
PYTHON
