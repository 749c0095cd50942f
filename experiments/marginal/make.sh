#!/usr/bin/env bash
# Make the fits of marginal selection that memlab ships (learn/probability=shipped) from nothing:
#   experiments/marginal/make.sh LONGMEMEVAL_S OUT
# The first is the dev slice of LongMemEval-S (151 questions), OUT a folder.
set -euo pipefail
[ $# -eq 2 ] || { sed -n 2,4p "$0" >&2; exit 2; }
mkdir -p "$2"
memlab train probability file="$2/best.json" l2=1000 system=best_learned data=synthetic data=longmemeval_s data.path="$1"
memlab train probability file="$2/plain.json" l2=1000 system=plain data=synthetic
sha256sum "$2"/best.json "$2"/plain.json
