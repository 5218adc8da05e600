#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests. Without options: what every change must pass, at most 20 minutes on two cores.
#   tests/run.sh --all [PART...]   the long form, in parts of at most 25 minutes, each with a closing line:
#     sanitize  all tests under AddressSanitizer and UndefinedBehaviorSanitizer
#     threads   those of threads under ThreadSanitizer
#     lint      clang-tidy over all sources; every test compiled without shared headers; CONTRIBUTING.md
#               followed, with an operator, kernels and a backend built in a copy of the sources
#     cuda      nvcc for all kernels, each executed by an interpreter of PTX, their registers, NVIDIA's
#               libraries
#     proofs    equivalence of the RTL's views, its area, seeded faults of RTL and twin
#     pages     the pages in Chromium; those that compute there, for which it installs a compiler
#     campaign  random campaigns: trainings on ranks, changed files, oversized inputs, kills, diverging warps, failing system calls
#     cases     all combinations of sizes, contracts, machines and mistakes of tests that take a covering few above
#     soak      five minutes of commands and long processes: constant memory, descriptors, temporary files
#     onnx      ONNX's own tests on every machine, whole networks
#     fuzz      loaders of files by libFuzzer, a minute each, from the corpus that earlier runs have left
#     python    the wheel, built and tried in fresh environments; types; notebooks in Jupyter; wants PyPI
#     labs      every lab: untouched, solved, and with each typical mistake
#     mutants   wrong conditions in core, backends, parallel and metrics: the tests above notice nine in ten
#     timing    ratios of times within one run, and how soon a fault is known; wants an idle machine
#     debian    the quickstart and the tests above on bare systems of Debian 12 and 13; needs root, debootstrap and
#               a mirror, and takes about an hour the first time
# docs/contributing/tests.md says when each part last passed, CONTRIBUTING.md which change needs which part.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=(sanitize threads lint cuda proofs pages campaign cases soak onnx fuzz python labs mutants timing debian)
jobs=$(nproc)

# build PRESET TARGET...
build() {
  cmake --preset "$1" >/dev/null || return
  cmake --build --preset "$1" -j "$jobs" --target "${@:2}"
}

# run PRESET [OPTION of ctest...]; two tests more than there are cores, because the longest ones wait most of the time
run() { ctest --preset "$1" -j $((jobs + 2)) --no-tests=error "${@:2}"; }

short_form() {
  build test all
  run test
  build hostile triptych_hostile_tests
  run hostile -L hostile
}

sanitize() { build dev all && run dev; }
threads() { build tsan triptych_threads_tests && run tsan -L threads; }
lint() { build long all && run long -L 'lint|architecture'; }
cuda() {
  if ! PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    echo "tests/run.sh: the part cuda needs nvcc, which comes with the CUDA toolkit" >&2
    exit 4
  fi
  build cuda triptych triptych_cuda_tests && run cuda -L cuda
}
proofs() { build long triptych_proofs_tests && run long -L proofs; }
pages() {
  bash experiments/setup.sh --web
  build long triptych render_page array_registers collective_prices && run long -L pages
}
campaign() { build long triptych triptych_failing_io core_tests machine_graph_test triptych_python_package && run long -L campaign; }
cases() { build long all && run long -L cases; }
soak() { build long triptych triptych_python_package && run long -L soak; }
onnx() { build long triptych && run long -L onnx; }
fuzz() { build fuzz triptych_fuzz_tests && run fuzz -L fuzz; }
python() { build long triptych triptych_python_package && run long -L python; }
labs() { build long triptych && run long -L labs; }
mutants() { python3 -B tests/mutation/mutants.py build/mutants; }
timing() { build long triptych triptych_timing_tests && run long -L timing; }
debian() { bash tests/debian/rehearse.sh bookworm trixie; }

main() {
  local started=$SECONDS part
  bash experiments/setup.sh --tests
  if [ "${1:-}" != --all ]; then
    short_form
    echo "tests: passed in $((SECONDS - started)) s"
    return
  fi
  shift
  [ $# -gt 0 ] || set -- "${parts[@]}"
  for part in "$@"; do
    if [[ " ${parts[*]} " != *" $part "* ]]; then
      echo "tests/run.sh: no part \"$part\"; there are: ${parts[*]}" >&2
      exit 2
    fi
  done
  for part in "$@"; do
    started=$SECONDS
    "$part"
    echo "$part: passed in $((SECONDS - started)) s at commit $(git rev-parse --short HEAD)"
  done
}
main "$@"
