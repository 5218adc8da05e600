// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/debug_entries.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "backends/cuda/plain/dwarf_reader.h"
#include "core/base/error.h"

namespace triptych::cuda::plain {
namespace {

enum Attribute : std::uint16_t {
  kLocation = 0x02,
  kName = 0x03,
  kByteSize = 0x0b,
  kLowPc = 0x11,
  kHighPc = 0x12,
  kConstValue = 0x1c,
  kUpperBound = 0x2f,
  kAbstractOrigin = 0x31,
  kCount = 0x37,
  kMemberLocation = 0x38,
  kDeclarationLine = 0x3b,
  kEncoding = 0x3e,
  kFrame = 0x40,
  kSpecification = 0x47,
  kType = 0x49,
  kRanges = 0x55,
};

enum Form : std::uint16_t {
  kAddress = 0x01,
  kBlock2 = 0x03,
  kBlock4,
  kData2,
  kData4,
  kData8,
  kText,
  kBlock,
  kBlock1,
  kData1,
  kFlag,
  kSigned,
  kTextAt,
  kUnsigned,
  kReferenceInFile,
  kReference1,
  kReference2,
  kReference4,
  kReference8,
  kReference,
  kIndirect,
  kSectionOffset,
  kExpression,
  kFlagPresent,
  kSignature = 0x20,
};

struct Abbreviation {
  std::uint64_t tag = 0;
  bool has_children = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> attributes;  ///< with their forms
};
using Abbreviations = std::unordered_map<std::uint64_t, Abbreviation>;

/// The value of an attribute: a number, a text or a block.
struct Value {
  std::uint64_t number = 0;
  std::string text;
  std::span<const std::byte> block;
  bool is_address = false;
};

Abbreviations read_abbreviations(std::span<const std::byte> section) {
  DwarfReader reader(section);
  Abbreviations all;
  for (auto code = reader.unsigned_number(); code != 0; code = reader.unsigned_number()) {
    auto& entry = all[code];
    entry.tag = reader.unsigned_number();
    entry.has_children = reader.take<std::uint8_t>() != 0;
    for (;;) {
      const auto name = reader.unsigned_number(), form = reader.unsigned_number();
      if (name == 0 && form == 0) break;
      entry.attributes.emplace_back(name, form);
    }
  }
  return all;
}

/// The entries of one compiled file.
class Unit {
 public:
  /// `offset`: of the unit in its section.
  Unit(const DebugSections& sections, std::uint64_t offset, std::vector<DebugEntry>& entries)
      : sections_(sections), offset_(offset), first_(entries.size()), entries_(entries) {}

  /// `unit`: the bytes behind its length.
  void read(std::span<const std::byte> unit) {
    DwarfReader reader(unit);
    const auto version = reader.take<std::uint16_t>();
    if (version != 4) {
      throw IoError(
          fmt::format("the debug information is of version {} of DWARF; 4 is understood", version));
    }
    const auto at = reader.take<std::uint32_t>();
    if (at > sections_.abbreviations.size()) throw IoError("the debug information is damaged");
    const auto abbreviations = read_abbreviations(sections_.abbreviations.subspan(at));
    reader.take<std::uint8_t>();  // bytes of an address
    std::vector<std::size_t> open;
    while (!reader.empty()) {
      const auto place = offset_ + sizeof(std::uint32_t) + unit.size() - reader.left();
      const auto code = reader.unsigned_number();
      if (code == 0) {
        if (!open.empty()) open.pop_back();
        continue;
      }
      const auto found = abbreviations.find(code);
      if (found == abbreviations.end()) throw IoError("the debug information is damaged");
      read_entry(reader, found->second, open.empty() ? DebugEntry::kNone : open.back(), place);
      if (found->second.has_children) open.push_back(entries_.size() - 1);
    }
    link();
  }

 private:
  void read_entry(DwarfReader& reader, const Abbreviation& abbreviation, std::size_t parent,
                  std::uint64_t place) {
    numbers_[place] = entries_.size();
    auto& entry = entries_.emplace_back();
    entry.tag = static_cast<DebugTag>(abbreviation.tag);
    entry.parent = parent;
    for (const auto& [name, form] : abbreviation.attributes) {
      set(entry, name, value_of(reader, form));
    }
  }

  void set(DebugEntry& entry, std::uint64_t attribute, Value value) {
    switch (attribute) {
      case kName:
        entry.name = std::move(value.text);
        break;
      case kLocation:
        entry.location = value.block;
        break;
      case kFrame:
        entry.frame_base = value.block;
        break;
      case kByteSize:
        entry.bytes = value.number;
        break;
      case kLowPc:
        entry.code = {{value.number, value.number}};
        if (entry.parent == DebugEntry::kNone) base_ = value.number;
        break;
      case kHighPc:
        if (entry.code.empty()) break;
        entry.code[0].end = value.is_address ? value.number : entry.code[0].begin + value.number;
        break;
      case kRanges:
        set_ranges(entry, value.number);
        break;
      case kConstValue:
        entry.value = static_cast<std::int64_t>(value.number);
        break;
      case kCount:
        entry.count = value.number;
        break;
      case kUpperBound:
        entry.count = value.number + 1;
        break;
      case kMemberLocation:
        entry.offset = value.number;
        break;
      case kDeclarationLine:
        entry.line = static_cast<unsigned>(value.number);
        break;
      case kEncoding:
        entry.encoding = value.number;
        break;
      case kType:
        entry.type = value.number;
        break;
      case kAbstractOrigin:
      case kSpecification:
        entry.origin = value.number;
        break;
      default:
        break;
    }
  }

  Value value_of(DwarfReader& reader, std::uint64_t form) {
    const auto number = [&](std::uint64_t value) { return Value{.number = value}; };
    const auto block = [&](std::uint64_t bytes) { return Value{.block = reader.cut(bytes)}; };
    switch (form) {
      case kAddress:
        return {.number = reader.take<std::uint64_t>(), .is_address = true};
      case kData1:
      case kFlag:
        return number(reader.take<std::uint8_t>());
      case kData2:
        return number(reader.take<std::uint16_t>());
      case kData4:
      case kSectionOffset:
        return number(reader.take<std::uint32_t>());
      case kData8:
      case kSignature:
        return number(reader.take<std::uint64_t>());
      case kUnsigned:
        return number(reader.unsigned_number());
      case kSigned:
        return number(static_cast<std::uint64_t>(reader.signed_number()));
      case kFlagPresent:
        return number(1);
      case kText:
        return {.text = reader.text()};
      case kTextAt:
        return {.text = text_at(reader.take<std::uint32_t>())};
      case kReferenceInFile:
        return number(reader.take<std::uint32_t>());
      case kReference1:
        return number(offset_ + reader.take<std::uint8_t>());
      case kReference2:
        return number(offset_ + reader.take<std::uint16_t>());
      case kReference4:
        return number(offset_ + reader.take<std::uint32_t>());
      case kReference8:
        return number(offset_ + reader.take<std::uint64_t>());
      case kReference:
        return number(offset_ + reader.unsigned_number());
      case kBlock1:
        return block(reader.take<std::uint8_t>());
      case kBlock2:
        return block(reader.take<std::uint16_t>());
      case kBlock4:
        return block(reader.take<std::uint32_t>());
      case kBlock:
      case kExpression:
        return block(reader.unsigned_number());
      case kIndirect:
        return value_of(reader, reader.unsigned_number());
      default:
        throw IoError(fmt::format("the debug information has the unknown form {}", form));
    }
  }

  void set_ranges(DebugEntry& entry, std::uint64_t at) const {
    if (at > sections_.ranges.size()) throw IoError("the debug information is damaged");
    DwarfReader reader(sections_.ranges.subspan(at));
    auto base = base_;
    entry.code.clear();
    for (;;) {
      const auto begin = reader.take<std::uint64_t>(), end = reader.take<std::uint64_t>();
      if (begin == 0 && end == 0) return;
      if (begin == ~std::uint64_t{0}) {
        base = end;
      } else {
        entry.code.push_back({base + begin, base + end});
      }
    }
  }

  std::string text_at(std::size_t offset) const {
    if (offset >= sections_.texts.size()) throw IoError("the debug information is damaged");
    return DwarfReader(sections_.texts.subspan(offset)).text();
  }

  /// Replaces places of entries by their numbers.
  void link() {
    for (auto i = first_; i < entries_.size(); ++i) {
      for (auto* place : {&entries_[i].type, &entries_[i].origin}) {
        const auto found = numbers_.find(*place);
        *place = found == numbers_.end() ? DebugEntry::kNone : found->second;
      }
    }
  }

  const DebugSections& sections_;
  std::uint64_t offset_;
  std::size_t first_;
  std::uint64_t base_ = 0;  ///< of its ranges
  std::vector<DebugEntry>& entries_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
};

}  // namespace

std::vector<DebugEntry> read_debug_entries(const DebugSections& sections) {
  std::vector<DebugEntry> entries;
  DwarfReader reader(sections.info);
  while (reader.left() > sizeof(std::uint32_t)) {
    const auto offset = sections.info.size() - reader.left();
    const auto length = reader.take<std::uint32_t>();
    Unit(sections, offset, entries).read(reader.cut(length));
  }
  return entries;
}

}  // namespace triptych::cuda::plain
