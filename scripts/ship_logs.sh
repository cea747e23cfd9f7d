#!/usr/bin/env bash
# Tunes some operators and the demo's network for the CPU at hand, on one thread and on all, and puts
# the records that decided into tuning_logs/shipped/. Run it on a quiet machine; some minutes. Other
# CPUs' logs stay.
#
# usage: scripts/ship_logs.sh [SECONDS_A_TASK]     default 8
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-8}
tenon=build/bin/tenon
work=build/ship
shipped=tuning_logs/shipped
model=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/models/ch_ppocr_mobile_v2.0_cls_infer.onnx
mkdir -p "$work" "$shipped"
rm -f "$work"/*.jsonl

operators=(
  "matmul m=1024 n=1024 k=1024"
  "matmul m=128 n=768 k=768"
  "batch_matmul batch=12 m=128 n=128 k=64"
  "conv2d c_in=256 h=14 w=14 c_out=256 k=3 pad=1"
  "conv2d c_in=1024 h=14 w=14 c_out=256 k=1"
  "softmax rows=128 columns=768"
  "layer_norm rows=128 columns=768"
)
for threads in 1 0; do
  for operator in "${operators[@]}"; do
    # shellcheck disable=SC2086
    $tenon tune $operator --threads $threads --time "${seconds}s" --log "$work/operators.jsonl"
  done
done
bash scripts/fetch_test_data.sh --models-only
$tenon tune "$model" --shape x=1x3x48x192 --threads 1 --time 60s --log "$work/network.jsonl"

cpu=$($tenon targets --json | python3 -c '
import json, re, sys
print(re.sub(r"[^A-Za-z0-9]+", "-", json.loads(sys.stdin.readline())["target"]["cpu"]).strip("-").lower())')
for log in operators network; do
  $tenon log best "$work/$log.jsonl" --json | python3 -c '
import json, sys
lines = open(sys.argv[1]).read().splitlines()
for found in map(json.loads, sys.stdin):
    if found["best"]: print(lines[int(found["best"].rsplit(":", 1)[1]) - 1])' "$work/$log.jsonl"
done > "$shipped/$cpu.jsonl"
$tenon log check "$shipped/$cpu.jsonl" --model "$model" --shape x=1x3x48x192
