// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/emulated_device.h"

#include <fmt/core.h>

#include "backends/cuda/kernels/kernels.h"

namespace triptych::cuda::emulation {
namespace {

constexpr std::string_view kOption = "emulation";
constexpr int kCapability = 90;  ///< of the emulated device

constexpr std::string_view kLessons = "lessons";

std::string emulation_of(const DeviceOptions& options) {
  const auto found = options.extra.find(std::string(kOption));
  return found == options.extra.end() ? "plain" : found->second;
}

Mode mode_of(const DeviceOptions& options) {
  const auto emulation = emulation_of(options);
  if (emulation == "plain") return Mode::Plain;
  if (emulation == "counted") return Mode::Counted;
  if (emulation == "checked" || emulation == kLessons) return Mode::Checked;
  throw InvalidArgument(
      fmt::format("emulation is \"{}\"; it must be plain, counted, checked or lessons", emulation));
}

KernelTable kernels_of(const DeviceOptions& options) {
  if (emulation_of(options) == kLessons) return counted::lesson_table();
  return mode_of(options) == Mode::Plain ? emulated::kernel_table(kCapability)
                                         : counted::kernel_table(kCapability);
}

DeviceOptions without_mode(DeviceOptions options) {
  options.extra.erase(std::string(kOption));
  return options;
}

}  // namespace

EmulatedDevice::EmulatedDevice(const DeviceOptions& options)
    : HostDevice("cuda-emulated", without_mode(options)),
      info_(describe_emulated(threads(), mode_of(options))),
      stream_(mode_of(options), emulation_of(options) != "checked"),
      kernels_(kernels_of(options)) {}

DeviceInfo describe_emulated(int threads, Mode mode) {
  DeviceInfo info{
      .name = "cuda-emulated",
      .description = "the GPU's kernels on this processor; its times say nothing of a GPU"};
  info.facts.threads = threads;
  info.facts.emulation = mode == Mode::Plain     ? "plain"
                         : mode == Mode::Counted ? "counted"
                                                 : "checked";
  info.facts.shared_bytes_per_block = kMaxSharedBytes;
  return info;
}

}  // namespace triptych::cuda::emulation
