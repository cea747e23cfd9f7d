#!/bin/sh
# How well the tuner's forecasts order points of operators that they never saw: measures random
# points of templates and sketches (once: a folder that has them is used again), prints the table.
#   tests/perf/ranker.sh [FOLDER] [POINTS] [RANKER.json]     # build/ranker_points 1000; about an hour
# A third argument keeps the ranker of all points there.
# TENON_TIMING_LOCK: a file that is locked while kernels are timed.
set -e
cd "$(dirname "$0")/../.."
folder=${1:-build/ranker_points}
points=${2:-1000}
ranker=$3
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
measure matmul_wide matmul_wide m=128 n=256 k=256
measure matmul_bf16 matmul_wide m=128 n=384 k=256 type=bf16
measure gemm gemm m=64 n=256 k=512
measure batch_matmul batch_matmul batch=6 m=128 n=128 k=64
measure batch_matmul_odd batch_matmul batch=5 m=96 n=160 k=48
measure conv_3x3 conv2d c_in=64 h=14 w=14 c_out=128 k=3 pad=1
measure conv_3x3_wide conv2d c_in=32 h=28 w=28 c_out=96 k=3 pad=1
measure conv_3x3_stride conv2d c_in=128 h=15 w=15 c_out=96 k=3 pad=1 stride=2
measure conv_1x1 conv2d c_in=256 h=14 w=14 c_out=64 k=1
measure conv_1x1_odd conv2d c_in=48 h=20 w=20 c_out=80 k=1
measure conv_blocked conv2d_blocked c_in=64 h=14 w=14 c_out=64 k=3 pad=1
measure conv_blocked_wide conv2d_blocked c_in=64 h=28 w=28 c_out=64 k=3 pad=1
measure conv_blocked_deep conv2d_blocked c_in=128 h=14 w=14 c_out=128 k=3 pad=1
measure conv1d conv1d c_in=64 w=512 c_out=64 k=3 pad=1
measure softmax softmax rows=128 columns=512
measure softmax_odd softmax rows=64 columns=1000
measure softmax_short softmax rows=512 columns=160
measure softmax_shorter softmax rows=300 columns=96
measure softmax_long softmax rows=48 columns=2000
measure log_softmax log_softmax rows=128 columns=512
measure log_softmax_odd log_softmax rows=256 columns=300
measure log_softmax_short log_softmax rows=400 columns=130
measure layer_norm layer_norm rows=128 columns=768
measure layer_norm_odd layer_norm rows=200 columns=320
measure layer_norm_short layer_norm rows=300 columns=200
measure batch_norm batch_norm c=64 h=28 w=28
measure pool pool op=max c=64 h=56 w=56 k=3 stride=2 pad=1
measure pool_2x2 pool op=max c=128 h=28 w=28 k=2 stride=2
measure global_pool global_pool c=512 h=7 w=7
measure reduce reduce shape=256x1536 axis=1
if [ -n "$ranker" ]; then
  build/bin/perf_ranker "$folder"/*.jsonl -o "$ranker"
else
  build/bin/perf_ranker "$folder"/*.jsonl
fi
