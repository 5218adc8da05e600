// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_fault.h"

#include <fmt/core.h>

namespace triptych {

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
      return "uninitialised memory";
    case FaultKind::Misaligned:
      return "misaligned address";
    case FaultKind::UnderWay:
      return "still under way";
    case FaultKind::Phase:
      return "wrong phase";
    case FaultKind::Endless:
      return "endless";
    case FaultKind::Assertion:
      return "failed assertion";
    case FaultKind::Division:
      return "division by zero";
    case FaultKind::StackOverflow:
      return "stack overflow";
  }
  return "";
}

std::string to_string(const FaultPlace::Index& index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}

KernelFault::KernelFault(FaultKind kind, const FaultPlace& place, const std::string& reason)
    : DeviceError(fmt::format("{}: {} at {}:{}, block {}, thread {}: {}", place.kernel,
                              to_string(kind), place.file, place.line, to_string(place.block),
                              to_string(place.thread), reason)),
      kind_(kind),
      place_(place),
      reason_(reason) {}

}  // namespace triptych
