#!/usr/bin/env bash
# Installs Tenon: one libtenon.so with LLVM inside and hidden, the commands tenon and tenon-runner, headers, a CMake
# package and the shipped tuning logs.
# usage: install.sh PREFIX [BUILD_FOLDER=build-install]     safe to run twice
set -euo pipefail
case "${1:-}" in
  ""|-h|--help) sed -n '2,4p' "$0" | cut -c3-; exit $([ "${1:-}" ] && echo 0 || echo 2) ;;
esac
prefix=$(realpath -m "$1")
folder=$(realpath -m "${2:-$(dirname "$0")/../build-install}")
cd "$(dirname "$0")/.."
bash scripts/build.sh "$folder" -DTENON_INSTALL=ON -DTENON_STATIC_LLVM=ON -DTENON_TESTS=OFF \
  -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -- tenon tenon_command tenon-runner
cmake --install "$folder" --strip > "$folder/install.log"
echo "installed in $prefix: $(du -sh "$prefix/lib" | cut -f1) of library; try $prefix/bin/tenon --version"
