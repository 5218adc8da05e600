// Why a group of ranks stopped: one fault, the same on every rank, its first cause.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace triptych::parallel {

using Seconds = std::chrono::duration<double>;

enum class Cause : std::uint8_t {
  Died,      ///< left, or its process ended, while others counted on it
  Stalled,   ///< did not answer within the deadline
  Mismatch,  ///< called another collective, or with another dtype, size or plan
  Threw,     ///< an exception of its own ended it
  Lost,      ///< sent a message that did not arrive
};

struct Fault {
  int culprit = -1;
  Cause cause = Cause::Died;
  std::string operation;  ///< `all-reduce #412 "grad bucket 2" (25.0 MiB)`. Empty: outside of any
  std::string detail;     ///< its exception, or the mismatch. May be empty
  Seconds waited{0};
  int noticed_by = -1;
};

/// As it is shown: `rank 3 stopped answering for 2.0 s in all-reduce #412 "grad bucket 2"
/// (25.0 MiB), noticed by rank 1`.
std::string to_string(const Fault& fault);

class FaultError : public CommError {
 public:
  explicit FaultError(Fault fault) : CommError(to_string(fault)), fault_(std::move(fault)) {}
  const Fault& fault() const { return fault_; }

 private:
  Fault fault_;
};

}  // namespace triptych::parallel
