#!/usr/bin/env bash
# Everything that a GPU can prove, in one session of at most nine minutes: builds for this machine's
# GPU, runs the conformance suite on it, compute-sanitizer, the benches beside their rivals
# (cuBLASLt, cuDNN, PyTorch) and the emulator's counters beside ncu's, and writes one JSON file with
# machine and date. What a tool is missing for is recorded as such.
#
#   experiments/bench/gpu_session.sh [--out FOLDER] [--build FOLDER]
#
# FOLDER of --out: experiments/recorded; of --build: build/gpu, kept between sessions.
# Exit code: 0 all of it ran and every bar is met, 1 not, 2 wrong usage, 3 there is no GPU.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/experiments/recorded
build=$root/build/gpu
limit_seconds=530

usage() {
  echo "gpu_session: $1; usage: gpu_session.sh [--out FOLDER] [--build FOLDER]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:-}; shift ;;
    --build) build=${2:-}; shift ;;
    *) usage "unknown argument \"$1\"" ;;
  esac
  [ $# -gt 0 ] && [ -n "${1:-}" ] || usage "a folder is missing"
  shift
done

no_gpu() {
  echo "gpu_session: no GPU can be used: $1" >&2
  exit 3
}
command -v nvidia-smi > /dev/null || no_gpu "there is no nvidia-smi; install NVIDIA's driver"
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>&1 | head -1) ||
  no_gpu "nvidia-smi says: $capability"
[[ $capability =~ ^[0-9]+\.[0-9]+$ ]] || no_gpu "nvidia-smi says: $capability"
for tool in python3 cmake ninja; do
  command -v $tool > /dev/null || usage "$tool is missing"
done

architecture=${capability/./}
[ "$architecture" = 90 ] && architecture=90a  # has wgmma
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$SECONDS
triptych=$build/experiments/triptych
conformance=$build/tests/conformance/backend_test
export XDG_CACHE_HOME=$work/cache  # kernels are measured in this session

# phase NAME SECONDS COMMAND...: runs it with that limit, or what is left of the session's; keeps
# what it prints, how long it took and its exit code (124: out of time, 125: no time left).
phase() {
  local name=$1 seconds=$2
  shift 2
  local left=$((limit_seconds - (SECONDS - started))) code=125 begin=$SECONDS
  [ "$left" -lt "$seconds" ] && seconds=$left
  if [ "$seconds" -gt 0 ]; then
    timeout --kill-after=5 "$seconds" "$@" > "$work/$name.out" 2> "$work/$name.err"
    code=$?
  fi
  printf '%s\t%s\t%s\t%s\n' "$name" "$((SECONDS - begin))" "$code" "${*//$root\//}" \
    >> "$work/phases"
  printf '%-28s %4d s  exit %d\n' "$name" "$((SECONDS - begin))" "$code"
}

# missing NAME WHY: a phase that cannot run here.
missing() {
  printf '%s\t0\t127\t%s\n' "$1" "$2" >> "$work/phases"
  printf '%-28s    not run: %s\n' "$1" "$2"
}

build_all() {
  phase configure 60 cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DTRIPTYCH_ENABLE_CUDA=ON "-DTRIPTYCH_CUDA_ARCHITECTURES=$architecture-real"
  phase build 240 cmake --build "$build" --parallel --target triptych backend_test
  if [ ! -x "$triptych" ] || [ ! -x "$conformance" ]; then
    tail -40 "$work/configure.err" "$work/build.out" "$work/build.err" >&2
    echo "gpu_session: the build failed" >&2
    exit 1
  fi
}

prove_results() {
  phase devices 20 "$triptych" devices --json
  phase conformance 60 env TRIPTYCH_TEST_BACKENDS=cpu,cuda "$conformance" --gtest_brief=1
  phase same_bits 40 "$triptych" train --model unet-s --steps 20 --contract bf16-exact \
    --backend cpu,cuda --out "$work/same_bits" --json
}

sanitize() {
  if ! command -v compute-sanitizer > /dev/null; then
    missing memcheck "there is no compute-sanitizer (package cuda-sanitizer)"
    missing racecheck "there is no compute-sanitizer (package cuda-sanitizer)"
    return
  fi
  local filter='*MatMul*:*Conv*:*Attention*:*Fused*:*BatchNorm*:*MaxPool*:*Softmax*:*Adam*'
  phase memcheck 45 env TRIPTYCH_TEST_BACKENDS=cuda compute-sanitizer --tool memcheck \
    --error-exitcode 9 "$conformance" --gtest_brief=1 "--gtest_filter=$filter"
  phase racecheck 45 env TRIPTYCH_TEST_BACKENDS=cuda compute-sanitizer --tool racecheck \
    --error-exitcode 9 "$conformance" --gtest_brief=1 \
    '--gtest_filter=*MatMul*:*Conv_*:*Attention*:*Softmax_*'
}

bench_products() {
  local kernel
  for kernel in naive coalesced tiled tiled-padded register-tiled vectorised cublaslt; do
    phase "matmul_f32_$kernel" 12 "$triptych" bench matmul --backend cuda --contract f32 \
      --kernel "$kernel" --sizes 4096 --repeats 5 --json
  done
  for kernel in vectorised tensor-core hopper cublaslt; do
    if [ $kernel = hopper ] && [ "$architecture" != 90a ]; then
      echo "matmul_bf16_hopper: needs compute capability 9.0"
      continue
    fi
    phase "matmul_bf16_$kernel" 12 "$triptych" bench matmul --backend cuda --contract bf16 \
      --kernel "$kernel" --sizes 4096,8192 --repeats 20 --json
  done
  phase attention 20 "$triptych" bench attention --backend cuda --contract f32 --heads 16 \
    --head-size 128 --lengths 1024..4096 --kernel materialised,flash --repeats 5 --json
}

# `explain` measures every kernel of every node: own and library kernels side by side, per layer.
bench_models() {
  local contract
  for contract in f32 bf16; do
    phase "layers_$contract" 40 "$triptych" explain --backend cuda --contract "$contract" \
      --model unet-l --batch 8 --json
  done
  phase step_unet_l 30 "$triptych" bench --backend cuda --contract bf16 --model unet-l --mode train \
    --batch 8 --repeats 20 --layers --json
  phase step_unet_s 20 "$triptych" bench --backend cuda --contract f32 --model unet-s --mode train \
    --batch 1 --repeats 50 --json
  if python3 -c 'import torch; assert torch.cuda.is_available()' 2> "$work/torch.err"; then
    phase torch 100 python3 "$root/experiments/bench/torch_rivals.py"
  else
    missing torch "PyTorch with CUDA: $(tail -1 "$work/torch.err")"
  fi
}

compare_counters() {
  local kernel shape=(--kernel "" --sizes 256)
  for kernel in naive coalesced tiled tiled-transposed tiled-padded; do
    shape[1]=$kernel
    phase "counted_$kernel" 20 "$triptych" bench matmul --backend cuda-emulated "${shape[@]}" --json
    if command -v ncu > /dev/null; then
      phase "ncu_$kernel" 20 ncu --csv --launch-count 1 --kernel-name "regex:matmul" --metrics \
"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,\
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum" \
        "$triptych" bench matmul --backend cuda "${shape[@]}" --repeats 1
    else
      missing "ncu_$kernel" "there is no ncu (package cuda-nsight-compute)"
    fi
  done
}

build_all
prove_results
bench_products
bench_models
sanitize
compare_counters
mkdir -p "$out"
python3 "$root/experiments/bench/gpu_report.py" "$work" "$out" "$root"
