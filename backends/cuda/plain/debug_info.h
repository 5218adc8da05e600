// Functions, variables and types of a library that was compiled for the debugger: without
// optimisation, so that each variable has one place in the frame of its function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/plain/debug_entries.h"
#include "backends/cuda/plain/object_file.h"

namespace triptych::cuda::plain {

struct DebugType {
  enum class Kind : std::uint8_t {
    Signed,
    Unsigned,
    Float,
    Bool,
    Character,
    Pointer,
    Structure,
    Array,
    Enumeration,
    Other
  };
  struct Member {
    std::string name;  ///< empty: a base class
    std::uint64_t offset = 0;
    std::size_t type = 0;
  };
  Kind kind = Kind::Other;
  std::string name;
  std::uint64_t bytes = 0;
  std::size_t target = 0;       ///< type behind a pointer, or of an array's elements
  std::uint64_t count = 0;      ///< elements of an array
  bool is_reference = false;    ///< a pointer that the source reads as its target
  std::vector<Member> members;  ///< of a structure. Of an enumeration: offsets are values
};

struct DebugVariable {
  enum class Base : std::uint8_t { FramePointer, StackPointer, SharedMemory, Library };
  std::string name;
  std::size_t type = 0;
  unsigned line = 0;  ///< of its declaration
  Base base = Base::FramePointer;
  std::int64_t offset = 0;
  std::vector<CodeRange> scope;  ///< code in which it is visible

  /// At the code that returns from a call to this address.
  bool is_visible(std::uint64_t address) const;
};

struct DebugFunction {
  std::string name;
  std::vector<CodeRange> code;
  std::vector<DebugVariable> variables;  ///< inner ones behind those that they hide
};

struct DebugInfo {
  std::vector<DebugType> types;  ///< the first is void
  std::vector<DebugFunction> functions;
  std::vector<DebugVariable> globals;  ///< of the library and of shared memory

  const DebugFunction* function_at(std::uint64_t address) const;
};

/// Addresses are those of the file.
DebugInfo read_debug_info(const ObjectFile& file);

}  // namespace triptych::cuda::plain
