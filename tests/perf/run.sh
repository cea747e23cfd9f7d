#!/usr/bin/env bash
# Tenon beside MKL, oneDNN, OpenBLAS, libxsmm and torch on the same cores: run.sh --help.
# The peers are installed into $TENON_PEERS (default build/peers) the first time; the programs are
# built in $TENON_BUILD (default build).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${TENON_BUILD:-$root/build}
folder=${TENON_PEERS:-$build/peers}

case " $* " in
  *" --help "* | *" -h "* | *" --list "*) exec python3 "$root/tests/perf/harness.py" "$@" ;;
esac
bash "$root/tests/perf/install_peers.sh" "$folder"
if [ "${TENON_PERF_BUILD:-1}" = 1 ]; then
  cmake -S "$root" -B "$build" -DTENON_PEERS="$folder" >/dev/null
  cmake --build "$build" -j "$(nproc)" --target perf_tenon perf_peers >/dev/null
fi
exec env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE "$folder/venv/bin/python" \
  "$root/tests/perf/harness.py" \
  --places "{\"bin\": \"$build/bin\", \"peers\": \"$folder\"}" --out "$build/perf/results.jsonl" "$@"
