#!/usr/bin/env bash
# Builds everything and runs all tests: under AddressSanitizer and UndefinedBehaviorSanitizer, those
# that use threads under ThreadSanitizer, then optimised. With --quick the optimised ones only.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
bash experiments/setup.sh --tests
jobs=$(nproc)

# build PRESET TARGET [OPTION...]
build() {
  cmake --preset "$1" "${@:3}" >/dev/null
  cmake --build --preset "$1" -j "$jobs" --target "$2"
}

if [ "${1:-}" != --quick ]; then
  # Sanitizers make g++ warn of what is not there, so warnings are errors in the last build only.
  build dev all
  ctest --preset dev -j "$jobs"
  build tsan triptych_thread_tests
  ctest --preset tsan -j "$jobs" -L threads
fi
cuda=()
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
  cuda=(-DTRIPTYCH_ENABLE_CUDA=ON -DTRIPTYCH_CUDA_ARCHITECTURES=90a-real)  # one, for speed
fi
build release all -DTRIPTYCH_WARNINGS_AS_ERRORS=ON "${cuda[@]}"
ctest --preset release -j "$jobs"
