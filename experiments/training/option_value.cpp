// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/option_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/base/error.h"

namespace triptych::training {
namespace {

template <class Limits>
[[noreturn]] void refuse(std::string_view name, const Limits& limits, const auto& value) {
  throw InvalidArgument(fmt::format("\"{}\" must be {}, got {}", name, to_string(limits), value));
}

template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class T>
void require_member_within(std::string_view name, const Limits& limits, const T& value) {
  if (const auto* whole = std::get_if<WholeLimits>(&limits)) {
    if constexpr (std::is_integral_v<T>) {
      const bool fits = std::in_range<std::int64_t>(value);
      if (!fits || !within(*whole, static_cast<std::int64_t>(value))) refuse(name, *whole, value);
    }
  } else if (const auto* number = std::get_if<NumberLimits>(&limits)) {
    if (!within(*number, static_cast<double>(value))) refuse(name, *number, value);
  }
}

}  // namespace

std::string to_string(const WholeLimits& limits) {
  return fmt::format("from {} to {}", limits.low, limits.high);
}

std::string to_string(const NumberLimits& limits) {
  return fmt::format(fmt::runtime(limits.above_low ? "above {}, up to {}" : "from {} to {}"),
                     limits.low, limits.high);
}

bool within(const WholeLimits& limits, std::int64_t value) {
  return value >= limits.low && value <= limits.high;
}

bool within(const NumberLimits& limits, double value) {
  return (limits.above_low ? value > limits.low : value >= limits.low) && value <= limits.high;
}

std::string text_of(const Value& value) {
  const auto text = []<class T>(const T& member) -> std::string {
    if constexpr (std::is_same_v<T, TextValue>) {
      return member.text();
    } else if constexpr (std::is_same_v<T, bool*>) {
      return *member ? "on" : "off";
    } else if constexpr (kIsNumber<std::remove_pointer_t<T>> || std::is_same_v<T, std::string*>) {
      return fmt::format("{}", *member);
    } else {
      return fmt::format("{}", fmt::join(*member, ","));
    }
  };
  return std::visit(text, value);
}

void copy_value(const Value& from, const Value& to) {
  TRIPTYCH_ASSERT(from.index() == to.index());
  const auto copy = [&]<class T>(const T& source) {
    const auto& target = std::get<T>(to);
    if constexpr (std::is_same_v<T, TextValue>) {
      TRIPTYCH_ASSERT(source.type == target.type);
      source.type->copy(target.object, source.object);
    } else {
      *target = *source;
    }
  };
  std::visit(copy, from);
}

bool same_value(const Value& one, const Value& other) {
  TRIPTYCH_ASSERT(one.index() == other.index());
  const auto same = [&]<class T>(const T& member) {
    if constexpr (std::is_same_v<T, TextValue>) {
      return member.text() == std::get<T>(other).text();
    } else {
      return *member == *std::get<T>(other);
    }
  };
  return std::visit(same, one);
}

void require_within(std::string_view name, const Limits& limits, const Value& value) {
  const auto require = [&]<class T>(const T& member) {
    if constexpr (kIsNumber<std::remove_pointer_t<T>>) require_member_within(name, limits, *member);
  };
  std::visit(require, value);
}

void require_within(std::string_view name, const NumberLimits& limits, double value) {
  if (!within(limits, value)) refuse(name, limits, value);
}

}  // namespace triptych::training
