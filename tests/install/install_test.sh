#!/usr/bin/env bash
# Installs Tenon, moves the installation elsewhere, and uses it as a user would: the command, and the lessons built by
# find_package(tenon).
# usage: install_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/tenon_install.XXXXXX")
trap 'rm -rf "$work"' EXIT

step() { echo "-- $* ($(date +%H:%M:%S))"; }
fail() { echo "install_test: $*" >&2; exit 1; }
expect() { # expect TEXT FILE
  grep -qF -- "$1" "$2" || { cat "$2" >&2; fail "\"$1\" is not in what $2 holds"; }
}

step "install"
bash "$source/scripts/install.sh" "$work/first" "$build"
mv "$work/first" "$work/prefix" # nothing may depend on where it was installed
prefix=$work/prefix
library=$prefix/lib/libtenon.so

step "symbols"
nm -D --defined-only --demangle "$library" > "$work/symbols"
expect "tenon::compile(tenon::Task const&" "$work/symbols"
if grep -E "^[0-9a-f]+ . ((vtable|typeinfo|typeinfo name|guard variable) for )?(llvm::|LLVM|google::)" "$work/symbols" |
  head -5 | grep .; then
  fail "libtenon.so exports symbols of LLVM or protobuf"
fi
if ldd "$library" | grep LLVM; then fail "libtenon.so needs a shared LLVM"; fi

step "command"
mkdir "$work/here" && cd "$work/here"
tenon=$prefix/bin/tenon
"$tenon" --version > version.txt && expect "tenon 0." version.txt
"$tenon" tune matmul m=32 n=32 k=32 --threads 1 --trials 2 --quiet > tune.txt # finds tenon-runner
expect "matmul: default" tune.txt
cmp -s "$prefix"/share/tenon/record.schema.json "$source"/autotvm/records/record.schema.json ||
  fail "the schema of the log lines is not installed as it is"
if [ -d "$source/tuning_logs/shipped" ]; then
  ls "$prefix"/share/tenon/tuning_logs/*.jsonl > /dev/null || fail "the shipped logs are not installed"
fi

step "lessons"
cmake -S "$source/examples" -B "$work/lessons" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  ${TENON_LESSON_OPTIONS:-} > configure.txt
ninja -C "$work/lessons" > ninja.txt || { cat ninja.txt; fail "the lessons do not build"; }
run() { # run NAME ARGUMENTS...: into NAME.txt
  local name=$1; shift
  "$work/lessons/$name" "$@" > "$name.txt" 2> "$name.err" || { cat "$name.txt" "$name.err"; fail "$name failed"; }
}
run lesson_01_formula; expect "by hand" lesson_01_formula.txt
run lesson_02_schedule; expect "a step that is not legal is refused" lesson_02_schedule.txt
run lesson_03_tune; expect "best of the log" lesson_03_tune.txt
run lesson_04_network "$source/examples/small.onnx" x=1x2x6x6; expect "elements, the first is" lesson_04_network.txt
run lesson_05_reductions; expect "does not commute" lesson_05_reductions.txt
run lesson_08_symbolic; expect "one kernel, all sizes" lesson_08_symbolic.txt
run lesson_06_staging; expect "this kernel takes it packed ahead" lesson_06_staging.txt
run lesson_09_intrinsics; expect "operand A of the formula is u8" lesson_09_intrinsics.txt
run lesson_07_parts_and_tails; expect "a reduction loop is not parallel" lesson_07_parts_and_tails.txt
run lesson_10_gpu; expect "thread_y" lesson_10_gpu.txt
run lesson_11_own_formula; expect "of the hand schedule" lesson_11_own_formula.txt

step "beside another LLVM in the same process"
other=$(ls /usr/lib/x86_64-linux-gnu/libLLVM*.so* 2>/dev/null | sort -V | tail -1 || true)
if [ -n "$other" ]; then
  LD_PRELOAD=$other "$work/lessons/lesson_01_formula" > preloaded.txt || fail "lesson 1 fails beside $other"
  cmp -s preloaded.txt lesson_01_formula.txt || fail "lesson 1 prints something else beside $other"
else
  echo "no shared LLVM on this machine: not tried"
fi
step "done"
