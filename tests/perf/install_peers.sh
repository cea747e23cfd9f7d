#!/usr/bin/env bash
# Installs what Tenon is compared with into FOLDER (about 9 GB, most of it what PyPI's torch depends
# on): install_peers.sh FOLDER. A second run finds everything there.
#   FOLDER/venv         MKL, oneDNN (SYCL build), numpy's OpenBLAS, torch
#   FOLDER/onednn-omp   an older oneDNN on OpenMP, whose calls cost less
# libxsmm comes from Debian where the user may install packages.
set -euo pipefail
folder=${1:?usage: install_peers.sh FOLDER}
mkdir -p "$folder"

venv() {  # NAME packages...
  local at=$folder/$1
  shift
  [ -f "$at/.ready" ] && return
  echo "installing $* into $at" >&2
  python3 -m venv "$at"
  "$at/bin/pip" install --quiet --disable-pip-version-check "$@"
  touch "$at/.ready"
}

venv venv mkl mkl-include onednn-devel numpy torch
venv onednn-omp onednn-devel-cpu-gomp==2023.2.0

if [ ! -f /usr/include/libxsmm.h ]; then
  if [ "$(id -u)" = 0 ] && apt-get install -y -qq libxsmm-dev >/dev/null 2>&1; then
    echo "installed libxsmm-dev" >&2
  else
    echo "libxsmm is not there (Debian's libxsmm-dev): its rows stay empty" >&2
  fi
fi
