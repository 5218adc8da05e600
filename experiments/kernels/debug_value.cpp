// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/debug_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <type_traits>

#include "backends/cuda/emulation/block.h"
#include "core/base/error.h"

namespace triptych::kernels {
namespace {

using cuda::plain::DebugType;
using Kind = DebugType::Kind;

constexpr std::size_t kShownElements = 16;  // of an array, in a text

template <class T>
T read(const std::vector<std::byte>& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof(T), bytes.size()));
  return value;
}

std::int64_t signed_number(const std::vector<std::byte>& bytes) {
  const auto word = read<std::uint64_t>(bytes);
  const auto unused = 64 - 8 * std::min<std::size_t>(bytes.size(), 8);
  return unused == 64 ? 0 : static_cast<std::int64_t>(word << unused) >> unused;
}

double floating_number(const std::vector<std::byte>& bytes) {
  if (bytes.size() == sizeof(float)) return read<float>(bytes);
  if (bytes.size() == sizeof(double)) return read<double>(bytes);
  return static_cast<double>(read<long double>(bytes));
}

DebugScalar number_in(const DebugType& type, const std::vector<std::byte>& bytes) {
  switch (type.kind) {
    case Kind::Bool:
      return read<std::uint8_t>(bytes) != 0;
    case Kind::Signed:
    case Kind::Character:
      return signed_number(bytes);
    case Kind::Float:
      return floating_number(bytes);
    case Kind::Enumeration:
      for (const auto& each : type.members) {
        if (static_cast<std::int64_t>(each.offset) == signed_number(bytes)) return each.name;
      }
      return signed_number(bytes);
    default:
      return read<std::uint64_t>(bytes);
  }
}

}  // namespace

/// expression: * expression, or a name or number with any of [expression], .name and ->name behind.
class LaneView::Parser {
 public:
  Parser(const LaneView& lane, std::string_view text) : lane_(lane), text_(text), rest_(text) {}

  DebugValue parse() {
    auto value = expression();
    skip_blanks();
    if (!rest_.empty()) refuse();
    return value;
  }

 private:
  [[noreturn]] void refuse() const {
    throw InvalidArgument(fmt::format(
        "\"{}\" is no expression of the debugger: write a variable, an element or a member, such "
        "as sum, tile[3], pair.a, p->a or *p",
        text_));
  }
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string word() {
    skip_blanks();
    std::size_t end = 0;
    while (end < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[end])) != 0 || rest_[end] == '_')) {
      ++end;
    }
    if (end == 0) refuse();
    const std::string result(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return result;
  }

  DebugValue expression() {
    if (take("*")) return lane_.behind(expression(), 0);
    auto value = first();
    for (;;) {
      if (take("[")) {
        value = lane_.element(value, lane_.whole_number(expression()));
        if (!take("]")) refuse();
      } else if (take("->")) {
        value = lane_.member(lane_.behind(value, 0), word());
      } else if (take(".")) {
        value = lane_.member(value, word());
      } else {
        return value;
      }
    }
  }

  DebugValue first() {
    const auto name = word();
    if (std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) {
      if (name.size() > 9) refuse();
      return {.number = std::stoll(name)};
    }
    if (auto value = lane_.variable(name)) return std::move(*value);
    if (name.ends_with("Idx") || name.ends_with("Dim")) {
      if (take(".")) {
        if (auto value = lane_.index_variable(name, word())) return std::move(*value);
      }
      refuse();
    }
    throw InvalidArgument(fmt::format("line {} of {} sees no variable \"{}\"; it sees {}",
                                      lane_.event_.line->line, lane_.event_.line->file, name,
                                      fmt::join(lane_.names(), ", ")));
  }

  const LaneView& lane_;
  std::string_view text_, rest_;
};

std::vector<std::string> LaneView::names() const {
  std::vector<std::string> names;
  for (const auto& each : event_.line->variables) {
    if (trace_.is_declared(*event_.line, *each.variable)) names.push_back(each.variable->name);
  }
  return names;
}

DebugValue LaneView::evaluate(std::string_view expression) const {
  return Parser(*this, expression).parse();
}

std::optional<DebugValue> LaneView::variable(const std::string& name) const {
  const auto value_of = [&](const cuda::plain::DebugVariable& variable) {
    return at_address(variable.type, trace_.address_of(variable));
  };
  for (const auto& each : event_.line->variables) {
    if (each.variable->name != name || !trace_.is_declared(*event_.line, *each.variable)) continue;
    if (each.bytes == 0) return value_of(*each.variable);
    const auto bytes = trace_.value(lane_, event_, each);
    DebugValue value = {.type = each.variable->type, .bytes = {bytes.begin(), bytes.end()}};
    // References to variables of functions stay addresses.
    const bool is_target_known = type_of(value).is_reference &&
                                 !trace_.array_at(read<std::uint64_t>(value.bytes)).first.empty();
    return is_target_known ? behind(value, 0) : value;
  }
  for (const auto& variable : trace_.info().globals) {
    if (variable.name == name) return value_of(variable);
  }
  return std::nullopt;
}

std::optional<DebugValue> LaneView::index_variable(const std::string& name,
                                                   const std::string& axis) const {
  const auto thread = trace_.choice().warp * cuda::emulation::kWarp + lane_;
  const cuda::emulation::Dim3 index = name == "threadIdx"
                                          ? cuda::emulation::index_in(trace_.block_dim(), thread)
                                      : name == "blockIdx" ? trace_.choice().block
                                      : name == "blockDim" ? trace_.block_dim()
                                                           : trace_.grid_dim();
  if (axis == "x") return DebugValue{.number = index.x};
  if (axis == "y") return DebugValue{.number = index.y};
  if (axis == "z") return DebugValue{.number = index.z};
  return std::nullopt;
}

DebugValue LaneView::at_address(std::size_t type, std::uint64_t address) const {
  auto bytes = trace_.memory(address, trace_.info().types[type].bytes, step_);
  if (!bytes) {
    throw InvalidArgument(
        fmt::format("address {:#x} is in none of the arrays that the kernel received, nor in "
                    "shared memory",
                    address));
  }
  return {.type = type, .bytes = std::move(*bytes), .address = address};
}

DebugValue LaneView::behind(const DebugValue& pointer, std::int64_t index) const {
  const auto& type = type_of(pointer);
  if (pointer.number || type.kind != Kind::Pointer || trace_.info().types[type.target].bytes == 0) {
    throw InvalidArgument("* and -> need a pointer to a value");
  }
  const auto size = static_cast<std::int64_t>(trace_.info().types[type.target].bytes);
  return at_address(type.target,
                    read<std::uint64_t>(pointer.bytes) + static_cast<std::uint64_t>(index * size));
}

DebugValue LaneView::element(const DebugValue& value, std::int64_t index) const {
  const auto& type = type_of(value);
  if (type.kind == Kind::Pointer) return behind(value, index);
  if (value.number || type.kind != Kind::Array) {
    throw InvalidArgument("[ ] needs an array or a pointer");
  }
  if (index < 0 || static_cast<std::uint64_t>(index) >= type.count) {
    throw InvalidArgument(fmt::format("element {} of an array of {}", index, type.count));
  }
  const auto size = trace_.info().types[type.target].bytes;
  return part(value, type.target, static_cast<std::uint64_t>(index) * size);
}

DebugValue LaneView::member(const DebugValue& value, const std::string& name) const {
  const auto& type = type_of(value);
  for (const auto& each : type.members) {
    if (type.kind != Kind::Structure) break;
    if (each.name == name) return part(value, each.type, each.offset);
    if (!each.name.empty()) continue;  // else a base class
    const auto base = part(value, each.type, each.offset);
    if (std::ranges::count(type_of(base).members, name, &DebugType::Member::name) > 0) {
      return member(base, name);
    }
  }
  throw InvalidArgument(
      fmt::format("{} has no member \"{}\"", type.name.empty() ? "the value" : type.name, name));
}

DebugValue LaneView::part(const DebugValue& whole, std::size_t type, std::uint64_t offset) const {
  DebugValue value = {.type = type};
  const auto bytes = trace_.info().types[type].bytes;
  if (offset + bytes > whole.bytes.size()) throw InvalidArgument("the value has no such part");
  const auto begin = whole.bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  value.bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
  if (whole.address) value.address = *whole.address + offset;
  return value;
}

std::int64_t LaneView::whole_number(const DebugValue& value) const {
  if (value.number) return *value.number;
  switch (type_of(value).kind) {
    case Kind::Signed:
    case Kind::Character:
    case Kind::Enumeration:
      return signed_number(value.bytes);
    case Kind::Unsigned:
    case Kind::Bool:
      return static_cast<std::int64_t>(read<std::uint64_t>(value.bytes));
    default:
      throw InvalidArgument("an index is a whole number");
  }
}

std::string LaneView::pointer_text(const DebugValue& value) const {
  const auto address = read<std::uint64_t>(value.bytes);
  if (address == 0) return "null";
  const auto [array, offset] = trace_.array_at(address);
  if (array.empty()) return fmt::format("{:#x}", address);
  const auto size = std::max<std::uint64_t>(trace_.info().types[type_of(value).target].bytes, 1);
  if (offset == 0) return "&" + array;
  return offset % size == 0 ? fmt::format("&{} + {}", array, offset / size)
                            : fmt::format("&{} + {} bytes", array, offset);
}

bool LaneView::is_array(const DebugValue& value) const {
  return !value.number && type_of(value).kind == Kind::Array;
}

bool LaneView::has_parts(const DebugValue& value) const {
  return is_array(value) || (!value.number && type_of(value).kind == Kind::Structure);
}

std::vector<std::pair<std::string, DebugValue>> LaneView::parts(const DebugValue& value) const {
  std::vector<std::pair<std::string, DebugValue>> parts;
  const auto& type = type_of(value);
  for (std::uint64_t i = 0; i < type.count; ++i) {
    parts.emplace_back("", element(value, static_cast<std::int64_t>(i)));
  }
  for (const auto& each : type.members) {
    auto member = part(value, each.type, each.offset);
    if (!each.name.empty()) {
      parts.emplace_back(each.name, std::move(member));
    } else {  // of a base class
      for (auto& inner : this->parts(member)) parts.push_back(std::move(inner));
    }
  }
  return parts;
}

DebugScalar LaneView::scalar(const DebugValue& value) const {
  if (value.number) return *value.number;
  if (type_of(value).kind == Kind::Pointer) return pointer_text(value);
  return number_in(type_of(value), value.bytes);
}

std::string LaneView::text(const DebugValue& value) const {
  if (!has_parts(value)) {
    return std::visit(
        [](const auto& each) {
          if constexpr (std::is_same_v<std::decay_t<decltype(each)>, double>) {
            return fmt::format("{:.7g}", each);
          } else {
            return fmt::format("{}", each);
          }
        },
        scalar(value));
  }
  std::vector<std::string> texts;
  for (const auto& [name, each] : parts(value)) {
    if (texts.size() == kShownElements && is_array(value)) {
      texts.emplace_back("...");
      break;
    }
    texts.push_back(name.empty() ? text(each) : fmt::format("{}={}", name, text(each)));
  }
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

bool LaneView::has_atomics(const DebugValue& value) const {
  const auto bytes = std::max<std::size_t>(1, value.bytes.size());
  return value.address && trace_.has_atomics(*value.address, bytes);
}

std::string LaneView::noted_text(const DebugValue& value) const {
  return text(value) + (has_atomics(value) ? " (atomic)" : "");
}

}  // namespace triptych::kernels
