// Descriptions of kernels for the program: their parameters, and the call for a thread. Written
// behind a student's source by `triptych kernel`, one KernelEntry for each kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

namespace triptych::cuda::plain {

/// A type's name, in the text that the compiler has for this function.
template <class T>
constexpr auto described() {
  return std::string_view(__PRETTY_FUNCTION__);
}

/// The same, ended by a zero.
template <class T>
struct TypeName {
  static constexpr std::string_view kText = [] {
    constexpr std::string_view mark = "T = ";
    auto text = described<T>();
    text.remove_prefix(text.find(mark) + mark.size());
    return text.substr(0, text.rfind(']'));
  }();
  static constexpr auto kName = [] {
    struct {
      char text[kText.size() + 1] = {};
    } name;
    for (std::size_t i = 0; i < kText.size(); ++i) name.text[i] = kText[i];
    return name;
  }();
};

/// The numbers that a value of this type holds: those of a float4 are floats.
template <class T>
constexpr auto number_of() {
  if constexpr (std::is_void_v<T> || std::is_pointer_v<T>) {
    return char{};
  } else if constexpr (requires(T v) { v.x; }) {
    return std::remove_cv_t<decltype(T::x)>{};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return T{};
  } else {
    return char{};
  }
}

template <class T>
constexpr ParameterKind kind_of() {
  if constexpr (std::is_pointer_v<T>) return ParameterKind::Pointer;
  if constexpr (std::is_same_v<T, bool>) return ParameterKind::Bool;
  if constexpr (std::is_floating_point_v<T>) return ParameterKind::Floating;
  if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? ParameterKind::Signed : ParameterKind::Unsigned;
  }
  return ParameterKind::Other;
}

template <class T>
constexpr Parameter parameter_of() {
  static_assert(!std::is_reference_v<T>, "a kernel takes no references: pass a pointer");
  Parameter parameter = {
      TypeName<T>::kName.text, kind_of<T>(), sizeof(T), ParameterKind::Other, 0, 0, false};
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_pointer_t<T>;
    using Plain = std::remove_cv_t<Pointee>;
    using Number = decltype(number_of<Plain>());
    parameter.is_const = std::is_const_v<Pointee>;
    if constexpr (std::is_arithmetic_v<Plain> || requires(Plain v) { v.x; }) {
      parameter.element = kind_of<Number>();
    }
    if constexpr (std::is_pointer_v<Plain>) parameter.element = ParameterKind::Pointer;
    parameter.element_bytes = sizeof(Number);
    if constexpr (!std::is_void_v<Plain>) parameter.pointee_bytes = sizeof(Plain);
    if constexpr (std::is_void_v<Plain>) parameter.pointee_bytes = 1;
  }
  return parameter;
}

template <auto* kKernel, class Signature = std::remove_pointer_t<decltype(kKernel)>>
struct Described;

template <auto* kKernel, class... P>
struct Described<kKernel, void(P...)> {
  // One more, so that there is an array of those of a kernel without parameters.
  static constexpr Parameter kParameters[] = {parameter_of<P>()..., {}};

  template <std::size_t... kIndex>
  TRIPTYCH_UNWATCHED static void call_with(void* const* arguments, std::index_sequence<kIndex...>) {
    kKernel(*static_cast<P*>(arguments[kIndex])...);
  }
  TRIPTYCH_UNWATCHED static void call(void* const* arguments) {
    call_with(arguments, std::index_sequence_for<P...>());
  }
  static constexpr KernelEntry entry(const char* name) {
    return {name, kParameters, sizeof...(P), call};
  }
};

}  // namespace triptych::cuda::plain
