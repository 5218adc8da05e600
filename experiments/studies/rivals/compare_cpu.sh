#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CPU against its rivals (OpenBLAS, oneDNN, ONNX Runtime, OpenVINO, PyTorch), all in the same run: in each
# round ours and every rival take a turn, on the same pinned processors. Prints a table of the bars
# as Markdown, and writes it with the raw samples (JSON) into a folder. A rival that is missing is
# told, with what installs it; its bars stay open.
#
#   experiments/studies/rivals/compare_cpu.sh [--parts gemm,infer,train,bf16,int8,memory,threads,neighbour,first]
#     [--only TEXT] [--rounds N] [--samples N] [--threads N] [--out FOLDER] [--build FOLDER]
#     [--program FILE] [--ours] [--dry-run]
#
# --only: cases whose name has this text, as "unet-s"; --samples: of a case and round, at most
# (1000; about a second's worth are taken); --ours: without rivals; --dry-run: print the
# commands of a round. Rivals are built into FOLDER of --build (build/rivals). PYTHON: a python3
# that has torch. All parts take about half an hour on two cores.
# Exit code: 0 every bar is met, 1 not, 2 wrong usage.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/experiments/studies/rivals
program=$root/build/release/experiments/triptych
build=$root/build/rivals
parts=gemm,infer,train,bf16,int8,memory,threads,neighbour,first
passed=()
rivals=yes

usage() {
  echo "compare_cpu: $1; see the head of $0" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --ours) rivals=no ;;
    --dry-run) passed+=(--dry-run) ;;
    --parts | --only | --rounds | --samples | --threads | --out | --build | --program)
      [ -n "${2:-}" ] || usage "$1 needs a value"
      case $1 in
        --parts) parts=$2 ;;
        --build) build=$2 ;;
        --program) program=$2 ;;
        *) passed+=("$1" "$2") ;;
      esac
      shift ;;
    *) usage "unknown argument \"$1\"" ;;
  esac
  shift
done
[ -x "$program" ] || usage "there is no $program; build the preset release, or give --program"
for tool in taskset python3; do
  command -v $tool > /dev/null || usage "$tool is missing"
done

python=python3
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
  "$candidate" -c 'import torch' 2> /dev/null && python=$candidate && break
done

# compile NAME LIBRARIES...: a rival, unless it is up to date; a log says why one does not build.
compile() {
  local name=$1 made=$build/$1
  shift
  [ -x "$made" ] && [ -z "$(find "$here/programs" -newer "$made" -name '*.[hc]*')" ] && return
  rm -f "$made"
  "${CXX:-g++}" -std=c++20 -O3 -march=native -ffp-contract=fast -fopenmp \
    "$here/programs/$name.cpp" -o "$made" "$@" 2> "$made.log" ||
    echo "compare_cpu: $name does not build; see $made.log" >&2
}

mkdir -p "$build"
compile fma_peak
if [ $rivals = yes ]; then
  compile gemm_openblas -lopenblas
  compile gemm_onednn -ldnnl
  compile unet_onednn -ldnnl
  if [ ! -e "$build/unet-l.onnx" ] && "$python" -c 'import torch' 2> /dev/null; then
    "$python" -B "$here/programs/export_onnx.py" "$build" > "$build/export.log" 2>&1 ||
      echo "compare_cpu: no ONNX models; see $build/export.log" >&2
  fi
fi
exec "$python" -B "$here/compare_cpu.py" --program "$program" --build "$build" --rivals $rivals \
  --parts "$parts" --root "$root" ${passed[@]+"${passed[@]}"}
