// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_device.h"

#include <fmt/core.h>

#include <fstream>

#include "backends/cpu/caches.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/measured_bandwidth.h"
#include "backends/cpu/measured_peak.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/tiles/tile_unit.h"

namespace triptych::cpu {
namespace {

std::string simd_name() {
  switch (simd_level()) {
    case Simd::Avx512:
      return "AVX-512";
    case Simd::Avx2:
      return "AVX2";
    case Simd::Baseline:
      return "baseline";
  }
  return "";
}

/// Nothing for the baseline, which differs between processors.
std::optional<std::int64_t> simd_lanes() {
  if (simd_level() == Simd::Avx512) return 16;
  if (simd_level() == Simd::Avx2) return 8;
  return std::nullopt;
}

/// Instructions for words of two k.
std::string dot_unit_name() {
  const auto& kernels = microkernels();
  if (kernels.dots_missing.empty()) return "VDPBF16PS (bf16), VPDPWSSD (int8)";
  const auto missing = "none for bf16: " + kernels.dots_missing;
  return kernels.pairs_by_vnni ? "VPDPWSSD (int8), " + missing : missing;
}

}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options)
    : HostDevice("cpu", options), info_(describe_cpu(threads())) {}

KernelTable CpuDevice::own_kernels() const { return kernel_table(); }

double CpuDevice::measure_peak(Contract contract) const {
  const bool on_tiles = contract == Contract::Bf16 && tile_unit_missing().empty();
  return on_tiles ? measured_tile_peak(threads()) : measured_peak(threads());
}

std::vector<LevelBandwidth> CpuDevice::level_bandwidths() const {
  return measured_bandwidths(threads(), data_caches());
}

std::string processor_name(const std::string& description) {
  std::ifstream file(description);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

DeviceInfo describe_cpu(int threads) {
  DeviceInfo info{.name = "cpu", .description = processor_name()};
  info.facts.threads = threads;
  info.facts.simd = simd_name();
  info.facts.tile_unit = tile_unit_missing().empty() ? "AMX" : "none: " + tile_unit_missing();
  info.facts.dot_unit = dot_unit_name();
  info.facts.simd_lanes = simd_lanes();
  for (const auto& cache : data_caches()) info.facts.cache_bytes[cache.level] = cache.bytes;
  return info;
}

}  // namespace triptych::cpu
