// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/debug_info.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>

#include "backends/cuda/plain/debug_entries.h"
#include "backends/cuda/plain/dwarf_reader.h"

namespace triptych::cuda::plain {
namespace {

using Kind = DebugType::Kind;
using Base = DebugVariable::Base;

/// Operations of locations, as the standard names them.
enum Operation : std::uint8_t {
  kAddress = 0x03,
  kConstant8 = 0x0e,
  kRegister0 = 0x70,  ///< plus the register: its content and an offset
  kFrameBase = 0x91,
  kInRegister0 = 0x50,  ///< plus the register
};
constexpr unsigned kFramePointer = 6, kStackPointer = 7;  // registers of x86-64

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

bool contains(const std::vector<CodeRange>& code, std::uint64_t address) {
  return std::ranges::any_of(
      code, [&](const CodeRange& range) { return range.begin <= address && address < range.end; });
}

Kind number_kind(std::uint64_t encoding) {
  switch (encoding) {
    case 0x02:
      return Kind::Bool;
    case 0x04:
      return Kind::Float;
    case 0x05:
      return Kind::Signed;
    case 0x06:
    case 0x08:
      return Kind::Character;
    case 0x07:
      return Kind::Unsigned;
    default:
      return Kind::Other;
  }
}

class InfoReader {
 public:
  explicit InfoReader(const std::vector<DebugEntry>& entries) : entries_(entries) {
    children_.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].parent != DebugEntry::kNone) children_[entries[i].parent].push_back(i);
    }
    info_.types.push_back({.name = "void"});
  }

  DebugInfo read() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const auto& entry = entries_[i];
      if (entry.tag == DebugTag::Subprogram && !entry.code.empty()) {
        info_.functions.push_back({name_of(i), entry.code, {}});
        const bool on_stack =
            !entry.frame_base.empty() &&
            std::to_integer<unsigned>(entry.frame_base[0]) == kInRegister0 + kStackPointer;
        frame_ = on_stack ? Base::StackPointer : Base::FramePointer;
        read_scope(i, entry.code);
      } else if (entry.tag == DebugTag::Variable && !entry.location.empty() && !in_function(i)) {
        if (auto variable = variable_of(i, {})) info_.globals.push_back(*variable);
      }
    }
    return std::move(info_);
  }

 private:
  /// The entry that `has` holds for, or the entry that gave it its attributes.
  template <class Has>
  const DebugEntry* find(std::size_t at, const Has& has) const {
    for (unsigned depth = 0; at != DebugEntry::kNone && depth < 8; ++depth) {
      if (has(entries_[at])) return &entries_[at];
      at = entries_[at].origin;
    }
    return nullptr;
  }
  std::string name_of(std::size_t at) const {
    const auto* named = find(at, [](const DebugEntry& entry) { return !entry.name.empty(); });
    return named == nullptr ? "" : named->name;
  }
  std::size_t type_of(std::size_t at) {
    const auto* typed =
        find(at, [](const DebugEntry& entry) { return entry.type != DebugEntry::kNone; });
    return typed == nullptr ? 0 : type_at(typed->type);
  }
  bool in_function(std::size_t at) const {
    for (at = entries_[at].parent; at != DebugEntry::kNone; at = entries_[at].parent) {
      if (entries_[at].tag == DebugTag::Subprogram) return true;
    }
    return false;
  }

  /// Adds the variables of a function, a block or an inlined function.
  void read_scope(std::size_t scope, const std::vector<CodeRange>& code) {
    for (const auto at : children_[scope]) {
      const auto& entry = entries_[at];
      if (entry.tag == DebugTag::Variable || entry.tag == DebugTag::FormalParameter) {
        auto variable = variable_of(at, code);
        if (variable) info_.functions.back().variables.push_back(std::move(*variable));
      }
    }
    for (const auto at : children_[scope]) {
      const auto& entry = entries_[at];
      if (entry.tag != DebugTag::LexicalBlock && entry.tag != DebugTag::InlinedSubroutine) continue;
      read_scope(at, entry.code.empty() ? code : entry.code);
    }
  }

  std::optional<DebugVariable> variable_of(std::size_t at, const std::vector<CodeRange>& scope) {
    DebugVariable variable = {.name = name_of(at), .scope = scope};
    if (variable.name.empty() || entries_[at].location.empty()) return std::nullopt;
    const auto* declared = find(at, [](const DebugEntry& entry) { return entry.line != 0; });
    if (declared != nullptr) variable.line = declared->line;
    DwarfReader reader(entries_[at].location);
    const auto operation = reader.take<std::uint8_t>();
    if (operation == kFrameBase) {
      variable.base = frame_;
      variable.offset = reader.signed_number();
    } else if (operation == kRegister0 + kFramePointer) {
      variable.offset = reader.signed_number();
    } else if (operation == kRegister0 + kStackPointer) {
      variable.base = Base::StackPointer;
      variable.offset = reader.signed_number();
    } else if (operation == kAddress || operation == kConstant8) {
      // The second one is an offset in the memory of a thread, where shared variables are.
      variable.base = operation == kAddress ? Base::Library : Base::SharedMemory;
      variable.offset = reader.take<std::int64_t>();
    } else {
      return std::nullopt;
    }
    variable.type = type_of(at);
    return variable;
  }

  /// The number of the type that an entry describes.
  std::size_t type_at(std::size_t at) {
    if (at == DebugEntry::kNone) return 0;
    if (const auto known = types_.find(at); known != types_.end()) return known->second;
    const auto& entry = entries_[at];
    if (entry.tag == DebugTag::Typedef || entry.tag == DebugTag::ConstType ||
        entry.tag == DebugTag::VolatileType) {
      return types_[at] = type_at(entry.type);
    }
    const auto number = info_.types.size();
    types_[at] = number;  // a structure may have pointers to itself
    info_.types.push_back({.name = entry.name, .bytes = entry.bytes});
    auto type = info_.types[number];
    describe(at, type);
    return (info_.types[number] = std::move(type), number);
  }

  void describe(std::size_t at, DebugType& type) {
    const auto& entry = entries_[at];
    switch (entry.tag) {
      case DebugTag::BaseType:
        type.kind = number_kind(entry.encoding);
        break;
      case DebugTag::PointerType:
      case DebugTag::ReferenceType:
      case DebugTag::RvalueReferenceType:
        type.kind = Kind::Pointer;
        type.bytes = sizeof(void*);
        type.is_reference = entry.tag != DebugTag::PointerType;
        type.target = type_at(entry.type);
        break;
      case DebugTag::StructureType:
      case DebugTag::ClassType:
      case DebugTag::UnionType:
        type.kind = Kind::Structure;
        read_members(at, type);
        break;
      case DebugTag::EnumerationType:
        type.kind = Kind::Enumeration;
        for (const auto each : children_[at]) {
          type.members.push_back(
              {entries_[each].name, static_cast<std::uint64_t>(entries_[each].value), 0});
        }
        break;
      case DebugTag::ArrayType:
        describe_array(at, type);
        break;
      default:
        break;
    }
  }

  void read_members(std::size_t at, DebugType& type) {
    for (const auto each : children_[at]) {
      const auto& entry = entries_[each];
      if (entry.tag != DebugTag::Member && entry.tag != DebugTag::Inheritance) continue;
      if (entry.type == DebugEntry::kNone) continue;
      type.members.push_back({entry.name, entry.offset, type_at(entry.type)});
    }
  }

  /// An array of several axes is one of arrays.
  void describe_array(std::size_t at, DebugType& type) {
    std::vector<std::uint64_t> counts;
    for (const auto each : children_[at]) {
      if (entries_[each].tag == DebugTag::SubrangeType) counts.push_back(entries_[each].count);
    }
    auto element = type_at(entries_[at].type);
    for (auto axis = counts.size(); axis-- > 0;) {
      const DebugType array = {.kind = Kind::Array,
                               .bytes = counts[axis] * info_.types[element].bytes,
                               .target = element,
                               .count = counts[axis]};
      if (axis == 0) {
        type = array;
      } else {
        element = info_.types.size();
        info_.types.push_back(array);
      }
    }
  }

  const std::vector<DebugEntry>& entries_;
  std::vector<std::vector<std::size_t>> children_;
  std::unordered_map<std::size_t, std::size_t> types_;
  DebugInfo info_;
  Base frame_ = Base::FramePointer;  ///< of the function that is read
};

}  // namespace

bool DebugVariable::is_visible(std::uint64_t address) const { return contains(scope, address - 1); }

const DebugFunction* DebugInfo::function_at(std::uint64_t address) const {
  const auto found = std::ranges::find_if(
      functions, [&](const DebugFunction& function) { return contains(function.code, address); });
  return found == functions.end() ? nullptr : &*found;
}

DebugInfo read_debug_info(const ObjectFile& file) {
  const auto info = file.text(".debug_info"), abbreviations = file.text(".debug_abbrev"),
             texts = file.text(".debug_str"), ranges = file.text(".debug_ranges");
  const auto entries = read_debug_entries(
      {bytes_of(info), bytes_of(abbreviations), bytes_of(texts), bytes_of(ranges)});
  return InfoReader(entries).read();
}

}  // namespace triptych::cuda::plain
