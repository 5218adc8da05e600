// Values of a kernel's variables at a step of its warp, and expressions of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cuda/plain/line_trace.h"

namespace triptych::kernels {

struct DebugValue {
  std::size_t type = 0;  ///< of DebugInfo
  std::vector<std::byte> bytes;
  std::optional<std::uint64_t> address;  ///< in shared or global memory
  std::optional<std::int64_t> number;    ///< a whole number of the expression itself
};

/// A number, a truth value, or the text of an enumerator or pointer.
using DebugScalar = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;

/// The view of one lane at a step of its warp.
class LaneView {
 public:
  /// `event`: the lane's, whose line it begins or waits at.
  LaneView(const cuda::plain::LineTrace& trace, unsigned lane, std::size_t step,
           const cuda::plain::LaneEvent& event)
      : trace_(trace), lane_(lane), step_(step), event_(event) {}

  /// Names of the variables that the line sees and that have a value.
  std::vector<std::string> names() const;
  /// "sum", "tile[i + 1]" without the sum: a name, a number, [ ], . , -> and *. Throws
  /// InvalidArgument for another text, for names that are not visible, and for memory that is none
  /// of the kernel's.
  DebugValue evaluate(std::string_view expression) const;
  /// As C++ writes it. Pointers are named by their array: "x.npy + 12".
  std::string text(const DebugValue& value) const;
  /// Atomic operations change the value in memory (LineTrace::has_atomics).
  bool has_atomics(const DebugValue& value) const;
  /// The text, and "(atomic)" for such a value.
  std::string noted_text(const DebugValue& value) const;
  /// Members of a structure, by name, or elements of an array.
  std::vector<std::pair<std::string, DebugValue>> parts(const DebugValue& value) const;
  bool is_array(const DebugValue& value) const;
  bool has_parts(const DebugValue& value) const;
  /// The value without parts.
  DebugScalar scalar(const DebugValue& value) const;

 private:
  class Parser;

  std::optional<DebugValue> variable(const std::string& name) const;
  std::optional<DebugValue> index_variable(const std::string& name, const std::string& axis) const;
  DebugValue at_address(std::size_t type, std::uint64_t address) const;
  DebugValue behind(const DebugValue& pointer, std::int64_t index) const;
  DebugValue element(const DebugValue& value, std::int64_t index) const;
  DebugValue member(const DebugValue& value, const std::string& name) const;
  DebugValue part(const DebugValue& whole, std::size_t type, std::uint64_t offset) const;
  std::int64_t whole_number(const DebugValue& value) const;
  std::string pointer_text(const DebugValue& value) const;
  const cuda::plain::DebugType& type_of(const DebugValue& value) const {
    return trace_.info().types[value.type];
  }

  const cuda::plain::LineTrace& trace_;
  unsigned lane_;
  std::size_t step_;
  const cuda::plain::LaneEvent& event_;
};

}  // namespace triptych::kernels
