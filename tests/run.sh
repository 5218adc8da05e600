#!/usr/bin/env bash
# Builds everything and runs all tests. With --sanitizers it first runs the tests under
# AddressSanitizer and UndefinedBehaviorSanitizer, and those that use threads under ThreadSanitizer.
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

if [ "${1:-}" = --sanitizers ]; then
  build dev
  ctest --preset dev -j "$jobs" -LE architecture
  build tsan triptych_thread_tests
  ctest --preset tsan -j "$jobs" -L threads
fi
build release
ctest --preset release -j "$jobs"
