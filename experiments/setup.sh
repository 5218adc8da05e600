#!/usr/bin/env bash
# Installs the packages of Debian 12 or 13 that the program needs, with --tests those that
# the tests need, too, with --web those that build the module of the array page (on Debian 12 alone).
# Does nothing, and needs no network, when they are all there.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

packages=(g++ cmake ninja-build ccache git pkg-config
          libtbb-dev libboost-context-dev libhwy-dev libeigen3-dev libfmt-dev libpng-dev libtiff-dev
          libjpeg-dev libcsv-dev libssl-dev libcli11-dev nlohmann-json3-dev libprotobuf-dev
          protobuf-compiler
          verilator make clang zlib1g-dev
          libopenmpi-dev openmpi-bin
          python3 python3-dev pybind11-dev python3-numpy)
if [ "${1:-}" = --tests ]; then
  packages+=(libgtest-dev libgmock-dev libbenchmark-dev clang-format clang-tidy libclang-rt-dev yosys
             iverilog libonnx-testdata python3-jsonschema python3-pytest python3-torch chromium)
fi
if [ "${1:-}" = --web ]; then
  packages+=(zopfli clang-19 lld-19 llvm-19 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32
             libclang-rt-19-dev-wasm32 wasi-libc yosys yosys-dev)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
