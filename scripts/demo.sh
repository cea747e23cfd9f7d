#!/usr/bin/env bash
# From a fresh Debian 12 to a tuned network that reads real pictures. Safe to run twice: tuning goes on from its log.
# usage: demo.sh [--time 60s]
set -euo pipefail
cd "$(dirname "$0")/.."
budget=60s
case "${1:-}" in
  --help|-h) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
  --time) budget=${2:?--time needs a duration, such as 60s} ;;
  "") ;;
  *) echo "demo.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
esac
say() { echo; echo "== $*"; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tenon
model=$cache/models/ch_ppocr_mobile_v2.0_cls_infer.onnx
tenon=build/bin/tenon
python=$cache/venv/bin/python
work=build/demo
log=$work/text_direction.jsonl
input=(--shape x=1x3x48x192 --threads 1 --log "$log")

say "set-up and build"
bash scripts/setup.sh
bash scripts/build.sh build -- tenon_command tenon-runner | tail -n 1
bash scripts/fetch_test_data.sh --models-only

say "two pictures: a line of text, and the same turned by 180 degrees ($work/*.png)"
$python scripts/demo/render.py "$work"

say "tuning on this machine for $budget"
$tenon tune "$model" "${input[@]}" --time "$budget" | tail -n 4

say "what the tuned network says"
for picture in upright turned; do
  $tenon run "$model" --log "$log" --threads 1 --input x="$work/$picture.npy" --output-dir "$work/$picture" --quiet
  cp "$work/$picture"/*.npy "$work/$picture.out.npy"
done
$python scripts/demo/compare.py "$model" "$work"

say "its kernels: default and tuned, beside the measured peak"
$tenon bench "$model" "${input[@]}" --unscheduled

say "beside onnxruntime"
$python scripts/demo/race.py "$tenon" "$model" "$log"
