#!/usr/bin/env bash
# Configures and builds into a folder: build.sh [FOLDER=build] [cmake options...] [-- targets...]
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}; shift || true
options=(); targets=()
while [ $# -gt 0 ]; do
  if [ "$1" = "--" ]; then shift; targets=("$@"); break; fi
  options+=("$1"); shift
done
# Paths relative to the checkout: build folders beside each other share the cache.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
mkdir -p "$folder"
cmake -S . -B "$folder" -G Ninja "${options[@]}" > "$folder/configure.log" 2>&1 || { cat "$folder/configure.log" >&2; exit 1; }
ninja -C "$folder" "${targets[@]}"
