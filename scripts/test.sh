#!/usr/bin/env bash
# Builds Tenon and runs every test. The last line is "N passed, N failed, N skipped"; exit 0 only if none failed.
# usage: test.sh [--fast]     --fast leaves out the sanitizer build and the second compiler
set -uo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  --help|-h) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
  ""|--fast) ;;
  *) echo "test.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
esac

passed=0; failed=0; skipped=0
stage() { echo; echo "== $1 ($(date +%H:%M:%S))"; }
count() { # adds one whole-stage result
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi
}
count_ctest() { # adds the numbers of a JUnit file
  read -r p f s < <(python3 scripts/count_junit.py "$1")
  passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
}
run_ctest() { # prints what fails, not what passes
  ctest --test-dir "$1" --output-junit ctest.xml --no-tests=error -j 2 --output-on-failure "${@:2}" 2>&1 |
    grep -vE '^ *Start +[0-9]+:|^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed '
  count_ctest "$1/ctest.xml"
}
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" -eq 0 ]; exit $?; }

stage "set-up"
bash scripts/setup.sh || { failed=1; finish; }

stage "build"
bash scripts/build.sh build -DTENON_TESTS=ON | tail -n 3
build=${PIPESTATUS[0]}
count "build" "$build"
[ "$build" -eq 0 ] || finish

if [ -f scripts/fetch_test_data.sh ]; then
  stage "test data"
  bash scripts/fetch_test_data.sh || echo "test data: not all could be fetched; tests that need it skip and say so"
fi

stage "tests"
# The npy tests compare with numpy where the fetched environment is there.
python=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/venv/bin/python
[ -x "$python" ] && export TENON_PYTHON=$python
rm -f build/ctest.xml
run_ctest build

if [ "${1:-}" != "--fast" ]; then
  stage "second compiler (clang, no code)"
  nice python3 scripts/clang_check.py build; count "clang" $?

  stage "sanitizers: unit tests and mutated files"
  bash scripts/build.sh build-asan -DTENON_SANITIZE=ON -- tests_unit tests_regress | tail -n 3
  asan=${PIPESTATUS[0]}
  count "sanitizer build" "$asan"
  if [ "$asan" -eq 0 ]; then
    rm -f build-asan/ctest.xml
    export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp
    # The leak check reads thread-local blocks of libraries that PoCL has closed, and crashes there.
    export ASAN_OPTIONS=intercept_tls_get_addr=0
    ulimit -s 65536 2>/dev/null || true # frames with checks are several times larger
    run_ctest build-asan -L 'unit|regress'
  fi
fi

echo
finish
