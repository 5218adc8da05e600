#!/usr/bin/env bash
# Builds the WebAssembly module of the array's page from the sources.
#   build.sh          replaces array.wasm.gz and array.sources
#   build.sh --check  builds it and compares it with array.wasm.gz; exit code 1: it differs, 77: not comparable here
# `bash experiments/setup.sh --web` installs what it needs. It builds in TRIPTYCH_WEB_DIR (default build/web).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${TRIPTYCH_WEB_DIR:-$root/build/web}
check=0
[ "${1:-}" != --check ] || check=1

for tool in clang++-19 wasm-ld-19 llvm-ar-19 yosys ninja zopfli; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing; to add it: bash experiments/setup.sh --web" >&2
    exit $((check ? 77 : 3))
  fi
done
tools="# built by $(clang++-19 --version | head -n 1), $(yosys -V | cut -d' ' -f1,2)"
if [ $check = 1 ] && [ "$(head -n 1 "$here/array.sources")" != "$tools" ]; then
  echo "array.wasm.gz was built by other versions; here: ${tools#\# built by }" >&2
  exit 77
fi
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release --toolchain "$root/cmake/wasm32.cmake" >/dev/null
cmake --build "$build" --target array_module
made=$build/experiments/web/module/array.wasm
if [ $check = 1 ]; then
  gzip -dc "$here/array.wasm.gz" | cmp "$made" - || { echo "the sources give another array.wasm.gz; run $0" >&2; exit 1; }
  exit 0
fi
list=$(python3 -B "$here/sources.py" "$build")
zopfli -c "$made" >"$here/array.wasm.gz"
printf '%s\n%s\n' "$tools" "$list" >"$here/array.sources"
ls -l "$here/array.wasm.gz"
