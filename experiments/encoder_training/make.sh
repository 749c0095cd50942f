#!/usr/bin/env bash
# Make the update that memlab ships (embedder=minilm_memory) from nothing: three trainings on different data, merged.
#   experiments/encoder_training/make.sh FRIENDSQA FAIRYTALEQA LONGMEMEVAL_S OUT
# The first two are the folders that `memlab data fetch` gives, the third is the file of `memlab data
# fetch longmemeval_s`; OUT is a new folder. Given again, it goes on.
# Some 20 minutes on two cores. The shipped file is that of commit 83875396: later rules make other statements.
set -euo pipefail
[ $# -eq 4 ] || { sed -n 2,6p "$0" >&2; exit 2; }
friends=$(realpath "$1") tales=$(realpath "$2") haystacks=$(realpath "$3")
mkdir -p "$4"
cd "$4"
pairs() { [ -f "$1.jsonl" ] || memlab train pairs file="$1.jsonl" store=store "${@:2}"; }
pairs friends plugins=[encoder_training] data=friendsqa data.path="$friends"
pairs tales plugins=[encoder_training] data=fairytaleqa data.path="$tales" limit=4000
pairs statements data=longmemeval_s data.path="$haystacks" questions=rules search/dense=none # BM25 finds the negatives
for name in friends tales statements; do
  memlab train encoder "pairs={$name.jsonl: 1}" out_model="$name" epochs=1 device=cpu
done
memlab experiment encoder_training merge out_model=merged \
  'updates={friends/update.safetensors: 0.6, tales/update.safetensors: 0.6, statements/update.safetensors: 0.6}'
sha256sum merged/update.safetensors
