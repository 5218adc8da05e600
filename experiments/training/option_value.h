// Values of options: a reference to one member of a configuration, its text and its limits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/choice.h"

namespace triptych::training {

struct WholeLimits {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

struct NumberLimits {
  double low = 0;
  double high = 0;
  bool above_low = false;  ///< `low` itself is not allowed
};

/// Unit of a number that is given without one.
enum class Unit : std::uint8_t { None, Mebibytes, Seconds, BytesPerSecond };

/// Allowed range of a number; none for another value.
using Limits = std::variant<std::monostate, WholeLimits, NumberLimits>;

/// "from 1 to 8", "above 0, up to 1".
std::string to_string(const WholeLimits& limits);
std::string to_string(const NumberLimits& limits);

/// False for NaN, too.
bool within(const WholeLimits& limits, std::int64_t value);
bool within(const NumberLimits& limits, double value);

/// A type with its own text form: Augmentation.
template <class T>
concept Worded = requires(std::string_view text) {
  T::from_text(text).text();
};

/// Operations on a value that files and command lines write as one text.
struct TextType {
  std::string (*text)(const void* value);
  /// Throws InvalidArgument for a text that no value has.
  void (*take)(void* value, std::string_view text);
  void (*copy)(void* to, const void* from);
  std::vector<std::string> (*names)() = nullptr;  ///< all texts. Null: there are too many
};

struct TextValue {
  void* object = nullptr;
  const TextType* type = nullptr;

  std::string text() const { return type->text(object); }
  void take(std::string_view text) const { type->take(object, text); }
};

/// A member of a configuration.
using Value = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, float*, double*,
                           std::string*, std::vector<std::string>*, std::vector<std::int64_t>*,
                           std::vector<double>*, TextValue>;

/// The operations of T, made of two functions.
template <class T, std::string (*Text)(const T&), void (*Take)(T&, std::string_view)>
inline constexpr TextType kTextType = {
    .text = [](const void* value) { return Text(*static_cast<const T*>(value)); },
    .take = [](void* value, std::string_view text) { Take(*static_cast<T*>(value), text); },
    .copy = [](void* to, const void* from) { *static_cast<T*>(to) = *static_cast<const T*>(from); },
    .names = nullptr};

template <class T>
TextType text_type() {
  TextType type = {.text = nullptr, .take = nullptr, .copy = [](void* to, const void* from) {
                     *static_cast<T*>(to) = *static_cast<const T*>(from);
                   }};
  if constexpr (Named<T>) {
    type.text = [](const void* value) {
      return std::string(name_of(*static_cast<const T*>(value)));
    };
    type.take = [](void* value, std::string_view text) {
      *static_cast<T*>(value) = value_of<T>(text);
    };
    type.names = names_of<T>;
  } else {
    type.text = [](const void* value) { return static_cast<const T*>(value)->text(); };
    type.take = [](void* value, std::string_view text) {
      *static_cast<T*>(value) = T::from_text(text);
    };
  }
  return type;
}

/// The text of an absent value is empty.
template <Named E>
TextType optional_text_type() {
  using T = std::optional<E>;
  return {.text =
              [](const void* value) {
                const auto& member = *static_cast<const T*>(value);
                return std::string(member ? name_of(*member) : "");
              },
          .take =
              [](void* value, std::string_view text) {
                auto& member = *static_cast<T*>(value);
                member = text.empty() ? T() : T(value_of<E>(text));
              },
          .copy = [](void* to,
                     const void* from) { *static_cast<T*>(to) = *static_cast<const T*>(from); },
          .names = names_of<E>};
}

template <class T>
Value value_of_member(T& member) {
  if constexpr (std::is_constructible_v<Value, T*>) {
    return &member;
  } else {
    static const TextType type = text_type<T>();
    return TextValue{&member, &type};
  }
}

template <Named E>
Value value_of_member(std::optional<E>& member) {
  static const TextType type = optional_text_type<E>();
  return TextValue{&member, &type};
}

/// The text of a value: "0.5", "on", "a,b", "cosine".
std::string text_of(const Value& value);

/// Copies between members of one type.
void copy_value(const Value& from, const Value& to);

/// True for equal members of one type.
bool same_value(const Value& one, const Value& other);

/// Throws InvalidArgument, which contains `name`, for a number beyond its limits.
void require_within(std::string_view name, const Limits& limits, const Value& value);
void require_within(std::string_view name, const NumberLimits& limits, double value);

}  // namespace triptych::training
