#!/bin/sh
# How well the tuner's forecasts order points of operators that they never saw: measures random
# points of templates and sketches (once: a folder that has them is used again), prints the table.
#   tests/perf/ranker.sh [FOLDER] [POINTS]      # build/ranker_points 1000; about 25 minutes
# TENON_TIMING_LOCK: a file that is locked while kernels are timed.
set -e
cd "$(dirname "$0")/../.."
folder=${1:-build/ranker_points}
points=${2:-1000}
ninja -C build perf_draft perf_ranker >/dev/null
mkdir -p "$folder"
measure() {
  file=$folder/$1.jsonl
  shift
  [ -s "$file" ] && return
  if [ -n "$TENON_TIMING_LOCK" ]; then
    build/bin/perf_draft measure "$file" "$points" 1 --lock "$TENON_TIMING_LOCK" "$@"
  else
    build/bin/perf_draft measure "$file" "$points" 1 "$@"
  fi
}
measure matmul matmul m=192 n=256 k=256
measure matmul_odd matmul m=130 n=250 k=190
measure batch_matmul batch_matmul batch=6 m=128 n=128 k=64
measure conv_3x3 conv2d c_in=64 h=14 w=14 c_out=128 k=3 pad=1
measure conv_3x3_wide conv2d c_in=32 h=28 w=28 c_out=96 k=3 pad=1
measure conv_3x3_stride conv2d c_in=128 h=15 w=15 c_out=96 k=3 pad=1 stride=2
measure conv_1x1 conv2d c_in=256 h=14 w=14 c_out=64 k=1
measure softmax softmax rows=128 columns=512
measure softmax_odd softmax rows=64 columns=1000
measure layer_norm layer_norm rows=128 columns=768
measure layer_norm_odd layer_norm rows=200 columns=320
build/bin/perf_ranker "$folder"/*.jsonl
