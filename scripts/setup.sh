#!/usr/bin/env bash
# Installs what Tenon's build and tests need on Debian 12. Safe to run twice: nothing is touched that is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git ccache clang-14
  llvm-19-dev libzstd-dev libxml2-dev zlib1g-dev lld-19
  nlohmann-json3-dev libfmt-dev libcli11-dev catch2
  protobuf-compiler libprotobuf-dev
  libxgboost-dev
  opencl-headers ocl-icd-libopencl1 pocl-opencl-icd
  python3 python3-venv fonts-dejavu-core libz3-dev
)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "setup: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run as root or install sudo; missing: ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
