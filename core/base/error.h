// The exceptions of Triptych. A message states the problem, the place, the reason and the remedy.
// The program maps each class to one exit code (docs/reference/exit-codes.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace triptych {

/// Base of every exception that Triptych throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Wrong use: a shape, a dtype, an attribute, an option. Thrown while a graph is built, verified
/// or loaded, never by a kernel. Exit code 2.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A file or folder that cannot be read or written, or that has broken content. Exit code 2.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A device or its driver is missing or failed. Exit code 3.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Well-formed, but the asked backend or this version cannot do it. Exit code 4.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// Numbers that went wrong: not finite, or not equal where equality was promised. Exit code 5.
class NumericError : public Error {
 public:
  using Error::Error;
};

/// A peer rank died, stalled or disagreed. Exit code 1.
class CommError : public Error {
 public:
  using Error::Error;
};

/// Prefixes `message` with the operator: "[Conv] weight has 3 input channels, x has 4".
[[noreturn]] void throw_invalid(std::string_view op, const std::string& message);

namespace internal {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace internal

}  // namespace triptych

/// Our own bug. Enabled in all builds. Not for hot loops.
#define TRIPTYCH_ASSERT(condition) \
  ((condition) ? void(0) : ::triptych::internal::assertion_failed(#condition, __FILE__, __LINE__))
