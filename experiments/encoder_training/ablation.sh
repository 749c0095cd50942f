#!/usr/bin/env bash
# What the settings of the training are worth: the recipe of make.sh with one setting changed, two seeds each, merged.
#   experiments/encoder_training/ablation.sh PAIRS LOCOMO SHORT OUT [PROCESSES]
# PAIRS holds friends.jsonl, tales.jsonl and statements.jsonl of make.sh, LOCOMO and SHORT are data files (short.py makes the
# second). The figures of a variant are in OUT/runs-VARIANT-SEED. On one H200 with 14 processes 400 s, on two cores a day.
set -euo pipefail
[ $# -ge 4 ] || { sed -n 2,5p "$0" >&2; exit 2; }
export PAIRS=$(realpath "$1") LOCOMO=$(realpath "$2") SHORT=$(realpath "$3")
processes=${5:-1}
mkdir -p "$4"
cd "$4"
variants=("base" "negatives3 negatives=3" "uniform weighting=uniform" "epochs2 epochs=2" "batch128 batch=128 rate=1e-4"
          "rate1e-4 rate=1e-4" "rate2.5e-5 rate=2.5e-5" "vocabulary embeddings=true"
          "rate1e-4_negatives3 rate=1e-4 negatives=3" "rate2e-4 rate=2e-4")
train() { # TASK SEED VARIANT SETTINGS
  memlab train encoder "pairs={$PAIRS/$1.jsonl: 1}" out_model="$3-$2-$1" epochs=1 seed="$2" "${@:4}"
}
measure() { # SEED VARIANT
  local one="$2-$1"
  memlab experiment encoder_training merge out_model="$one" "updates={$one-friends/update.safetensors: 0.6, $one-tales/update.safetensors: 0.6, \
$one-statements/update.safetensors: 0.6}"
  for data in "data=locomo data.path=$LOCOMO" "data=longmemeval_s data.path=$SHORT" "data=synthetic"; do
    memlab run system=best name="$one" embedder.name="$one" embedder.adapter="$one/update.safetensors" track=none \
      store="store-$one" out="runs-$one" $data
  done
}
export -f train measure
for variant in "${variants[@]}"; do
  for seed in 0 1; do for task in statements tales friends; do echo "train $task $seed $variant"; done; done
done | xargs -P "$processes" -I{} bash -c '{}'
for variant in "${variants[@]}"; do for seed in 0 1; do echo "measure $seed ${variant%% *}"; done; done |
  xargs -P "$processes" -I{} bash -c '{}'
