// The entries of a section .debug_info (version 4 of DWARF, section 7.5), as a flat list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace triptych::cuda::plain {

/// Tags, as the standard names them.
enum class DebugTag : std::uint16_t {
  ArrayType = 0x01,
  ClassType = 0x02,
  EnumerationType = 0x04,
  FormalParameter = 0x05,
  LexicalBlock = 0x0b,
  Member = 0x0d,
  PointerType = 0x0f,
  ReferenceType = 0x10,
  StructureType = 0x13,
  Typedef = 0x16,
  UnionType = 0x17,
  Inheritance = 0x1c,
  InlinedSubroutine = 0x1d,
  SubrangeType = 0x21,
  BaseType = 0x24,
  ConstType = 0x26,
  Enumerator = 0x28,
  Subprogram = 0x2e,
  Variable = 0x34,
  VolatileType = 0x35,
  RvalueReferenceType = 0x42,
};

/// Addresses of code, from the first one to behind the last.
struct CodeRange {
  std::uint64_t begin = 0, end = 0;
};

/// An entry with the attributes that a debugger needs. `type`, `origin` and `parent` are indices
/// into the list, or kNone.
struct DebugEntry {
  static constexpr std::size_t kNone = ~std::size_t{0};

  DebugTag tag{};
  std::size_t parent = kNone, type = kNone;
  std::size_t origin = kNone;  ///< the entry whose attributes this one has, too
  std::string name;
  std::vector<CodeRange> code;  ///< empty: that of its parent
  std::uint64_t bytes = 0;      ///< of a value
  std::uint64_t count = 0;      ///< elements along an axis of an array
  std::uint64_t encoding = 0;   ///< of numbers
  std::uint64_t offset = 0;     ///< of a member
  std::int64_t value = 0;       ///< of an enumerator
  unsigned line = 0;            ///< of its declaration
  std::span<const std::byte> location, frame_base;
};

struct DebugSections {
  std::span<const std::byte> info, abbreviations, texts, ranges;
};

/// Throws IoError for another version of DWARF and for bytes that are no such section. The
/// locations refer to the section.
std::vector<DebugEntry> read_debug_entries(const DebugSections& sections);

}  // namespace triptych::cuda::plain
