#!/usr/bin/env bash
# Registers that ptxas gives the kernels that matrix products, convolutions and attention are made of, for
# compute capability 8.0 and 9.0a: fails when a hot one spills registers, and lists registers per thread of
# every instance, as registers.csv has them. `check_registers.sh --update` writes that file.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../../.."
table=backends/cuda/kernels/registers.csv
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
  echo "skipped: nvcc is not installed (it comes with the CUDA toolkit)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "instance",architecture,registers,spilled bytes: of each in one file, without namespaces
measure() {
  "$nvcc" -std=c++20 -I. -O3 -fmad=false -ftz=true --expt-relaxed-constexpr -Xptxas -v -cubin \
    -gencode "arch=compute_$2,code=sm_$2" "backends/cuda/kernels/$1.cu" -o "$work/out" 2>&1 |
    awk -v architecture="$2" '
      /Compiling entry function/ { match($0, /_Z[A-Za-z0-9_]+/); kernel = substr($0, RSTART, RLENGTH) }
      /spill stores/ { spilled = $5 + $9 }
      /Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/)
        print kernel, architecture, substr($0, RSTART + 5, RLENGTH - 5), spilled
      }' |
    while read -r kernel architecture registers spilled; do
      name=$(c++filt "$kernel" | sed -E 's/\(anonymous namespace\):://g; s/(triptych|cuda|gpu):://g
        s/^void //; s/\(.*//; s/ //g')
      echo "\"$name\",$architecture,$registers,$spilled"
    done
}

for architecture in 80 90a; do
  for file in matmul conv conv_weight_gradient attention attention_gradient bf16_operands tensor_core_{matmul,conv,attention}; do
    measure "$file" "$architecture"
  done
done >"$work/instances"
for file in hopper_{matmul,conv,weight_gradient}; do measure "$file" 90a; done >>"$work/instances"

grep -E '^"(((vectorised|tensor_core|hopper)_)?gemm|(flash|tensor_core)_attention(_(key|query)_gradient)?)_kernel' "$work/instances" |
  sed -E 's/^"(.*)",([0-9a-z]+),[0-9]+,([0-9]+)$/\1 for \2 spills \3 bytes of registers/' |
  (! grep -v ' spills 0 bytes')
{
  echo "kernel,architecture,registers"
  sed -E 's/,[0-9]+$//' "$work/instances" | LC_ALL=C sort
} >"$work/registers.csv"
if [ "${1:-}" = --update ]; then
  cp "$work/registers.csv" "$table"
elif ! diff "$table" "$work/registers.csv"; then
  # Another ptxas allocates otherwise: worth a look, not a failure.
  echo "registers differ from $table; tests/unit/cuda/check_registers.sh --update writes it anew"
fi
