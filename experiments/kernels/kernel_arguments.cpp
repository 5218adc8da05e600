// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/kernel_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/random.h"
#include "core/io/npy.h"

namespace triptych::kernels {
namespace {

using cuda::plain::Parameter;
using cuda::plain::ParameterKind;

constexpr std::byte kUndefined{0xFF};  // a float of these is no number

[[noreturn]] void refuse(int number, const std::string& text, const Parameter& parameter,
                         const std::string& why) {
  throw InvalidArgument(fmt::format("argument {}, \"{}\", is for a parameter of the type {}: {}",
                                    number, text, parameter.type, why));
}

/// The numbers of an array that a pointer like this leads to. Nothing: no array here has them.
std::optional<DType> dtype_behind(const Parameter& parameter) {
  const auto bytes = parameter.element_bytes;
  switch (parameter.element) {
    case ParameterKind::Floating:
      if (bytes == 4) return DType::F32;
      break;
    case ParameterKind::Bool:
      return DType::Bool;
    case ParameterKind::Signed:
    case ParameterKind::Unsigned:
      if (bytes == 4) return DType::I32;
      if (bytes == 8) return DType::I64;
      if (bytes == 1) return parameter.element == ParameterKind::Signed ? DType::I8 : DType::U8;
      break;
    default:
      break;
  }
  return std::nullopt;
}

/// Throws where the kernel would read the array's bytes as other numbers. Bytes of a structure, and
/// of void, may come from any array.
void check_numbers(const KernelArgument& argument, const Parameter& parameter, int number,
                   const TensorSpec& spec) {
  if (parameter.element == ParameterKind::Other) return;
  if (parameter.element == ParameterKind::Pointer) {
    refuse(number, argument.text, parameter, "an array holds numbers, and no addresses");
  }
  const auto wanted = dtype_behind(parameter);
  if (!wanted) {
    refuse(
        number, argument.text, parameter,
        fmt::format("no array here has numbers of this type. The types are f32, i32, i64, i8, u8 "
                    "and bool, and unsigned of 4 and 8 bytes are i32 and i64; the array is {}. "
                    "Give the parameter one of them, for example by a definition of its type",
                    to_string(spec)));
  }
  if (spec.dtype == *wanted) return;
  refuse(number, argument.text, parameter,
         fmt::format("the array is {}, and the kernel would read its bytes as {}", to_string(spec),
                     to_string(*wanted)));
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

struct NewArray {
  TensorSpec spec;
  std::string fill;  ///< behind "="
};

/// "f32:64x64=0". Nothing: the text has another form.
std::optional<NewArray> new_array_in(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto equals = text.find('=', colon);
  NewArray array;
  if (equals != std::string::npos) array.fill = text.substr(equals + 1);
  array.spec.dtype = dtype_from_string(text.substr(0, colon));
  auto sizes = std::string_view(text).substr(
      colon + 1, equals == std::string::npos ? equals : equals - colon - 1);
  std::vector<std::int64_t> dims;
  while (!sizes.empty()) {
    const auto end = std::min(sizes.find('x'), sizes.size());
    const auto size = number_in<std::int64_t>(sizes.substr(0, end));
    if (!size || *size < 1) return std::nullopt;
    dims.push_back(*size);
    sizes.remove_prefix(std::min(end + 1, sizes.size()));
  }
  if (dims.empty()) return std::nullopt;
  array.spec.shape = Shape(dims);
  return array;
}

/// Numbers of a new array, by its words behind "=".
Tensor filled(const NewArray& array, std::uint64_t seed, int number) {
  Tensor tensor(array.spec);
  if (array.fill.empty()) {
    std::ranges::fill(tensor.bytes(), kUndefined);
    return tensor;
  }
  std::vector<double> values(static_cast<std::size_t>(tensor.elements()));
  const auto constant = number_in<double>(array.fill);
  if (!constant && array.fill != "random" && array.fill != "count") {
    throw InvalidArgument(
        fmt::format("an array is filled with a number, random or count, not "
                    "\"{}\"",
                    array.fill));
  }
  const bool whole = !is_floating(array.spec.dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (constant) {
      values[i] = *constant;
    } else if (array.fill == "count") {
      values[i] = static_cast<double>(i);
    } else {
      const double uniform = random_uniform(seed, static_cast<std::uint64_t>(number), i);
      values[i] = whole ? std::floor(100 * uniform) : 2 * uniform - 1;
    }
  }
  return from_doubles(array.spec, values);
}

/// "f32:64x64", with unknown content.
bool is_new_and_undefined(const std::string& text) {
  return !text.ends_with(".npy") && text.find('=') == std::string::npos;
}

Tensor array_in(const std::string& text, const Parameter& parameter, int number,
                std::uint64_t seed) {
  if (text.ends_with(".npy")) return load_npy(text);
  std::optional<NewArray> array;
  try {
    array = new_array_in(text);
  } catch (const InvalidArgument& error) {
    refuse(number, text, parameter, error.what());
  }
  if (!array) {
    refuse(number, text, parameter,
           "give an array: a .npy file, a new one such as f32:64x64 (undefined) or f32:64x64=0, or "
           "null");
  }
  return filled(*array, seed, number);
}

void take_array(KernelArgument& argument, const Parameter& parameter, int number,
                std::uint64_t seed) {
  if (argument.text == "null") return;
  const Tensor tensor = array_in(argument.text, parameter, number, seed);
  check_numbers(argument, parameter, number, tensor.spec());
  if (parameter.pointee_bytes > 1 && tensor.bytes().size() % parameter.pointee_bytes != 0) {
    refuse(number, argument.text, parameter,
           fmt::format("the array's {} bytes are no multiple of {}", tensor.bytes().size(),
                       parameter.pointee_bytes));
  }
  argument.spec = tensor.spec();
  argument.is_undefined = !parameter.is_const && is_new_and_undefined(argument.text);
  argument.memory.emplace(tensor.bytes().size());
  std::ranges::copy(tensor.bytes(), argument.memory->bytes().begin());
  const auto* address = argument.memory->bytes().data();
  std::memcpy(argument.value.data(), static_cast<const void*>(&address), sizeof(address));
}

template <class T>
void put(KernelArgument& argument, T value) {
  std::memcpy(argument.value.data(), &value, sizeof(T));
}

void take_whole(KernelArgument& argument, const Parameter& parameter, int number) {
  const unsigned bits = parameter.bytes * 8;
  if (parameter.kind == ParameterKind::Unsigned) {
    const auto value = number_in<std::uint64_t>(argument.text);
    if (!value || (bits < 64 && *value >> bits != 0)) {
      refuse(number, argument.text, parameter, "give a whole number that it can hold");
    }
    return put(argument, *value);
  }
  const auto value = number_in<std::int64_t>(argument.text);
  const auto most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  if (!value || *value > most || *value < -most - 1) {
    refuse(number, argument.text, parameter, "give a whole number that it can hold");
  }
  put(argument, *value);
}

void take_floating(KernelArgument& argument, const Parameter& parameter, int number) {
  const auto value = number_in<double>(argument.text);
  if (!value) refuse(number, argument.text, parameter, "give a number");
  if (parameter.bytes == sizeof(float)) {
    put(argument, static_cast<float>(*value));
  } else {
    put(argument, *value);
  }
}

}  // namespace

KernelArgument read_argument(const std::string& text, const Parameter& parameter, int number,
                             std::uint64_t seed) {
  KernelArgument argument;
  argument.text = text;
  switch (parameter.kind) {
    case ParameterKind::Pointer:
      take_array(argument, parameter, number, seed);
      break;
    case ParameterKind::Bool:
      if (text != "0" && text != "1" && text != "true" && text != "false") {
        refuse(number, text, parameter, "give true or false");
      }
      put(argument, text == "1" || text == "true");
      break;
    case ParameterKind::Signed:
    case ParameterKind::Unsigned:
      take_whole(argument, parameter, number);
      break;
    case ParameterKind::Floating:
      take_floating(argument, parameter, number);
      break;
    case ParameterKind::Other:
      refuse(number, text, parameter,
             "values of this type cannot be given here; pass a pointer, or "
             "single numbers");
  }
  return argument;
}

}  // namespace triptych::kernels
