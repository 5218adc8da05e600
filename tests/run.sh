#!/usr/bin/env bash
# Builds everything and runs all tests: under ThreadSanitizer the parts that use threads, under
# AddressSanitizer and UndefinedBehaviorSanitizer everything, and the optimised build last.
# --fast leaves the sanitizers out.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
bash experiments/setup.sh --tests
jobs=$(nproc)

# build PRESET [TARGET]
build() {
  cmake --preset "$1" -DTRIPTYCH_WARNINGS_AS_ERRORS=ON >/dev/null
  cmake --build --preset "$1" -j "$jobs" --target "${2:-all}"
}

build release
if [ "${1:-}" != --fast ]; then
  build dev
  ctest --preset dev -j "$jobs" -LE architecture
  build tsan triptych_thread_tests
  ctest --preset tsan -j "$jobs" -L threads
fi
ctest --preset release -j "$jobs"
