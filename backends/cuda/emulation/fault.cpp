// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/fault.h"

#include <fmt/format.h>

namespace triptych::cuda::emulation {
namespace {

std::string place_text(const Dim3& at) { return fmt::format("({}, {}, {})", at.x, at.y, at.z); }

}  // namespace

std::string to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::OutOfBounds:
      return "out of bounds";
    case FaultKind::Race:
      return "race";
    case FaultKind::DivergentBarrier:
      return "divergent barrier";
    case FaultKind::MissingLane:
      return "missing lane";
    case FaultKind::Uninitialised:
      return "uninitialised shared memory";
  }
  return "";
}

KernelFault::KernelFault(FaultKind kind, const FaultPlace& place, const std::string& what)
    : DeviceError(fmt::format("{}: {} at {}:{}, block {}, thread {}: {}", place.kernel,
                              to_string(kind), place.file, place.line, place_text(place.block),
                              place_text(place.thread), what)),
      kind_(kind),
      place_(place) {}

}  // namespace triptych::cuda::emulation
