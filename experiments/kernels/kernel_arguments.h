// Values of a kernel's parameters, from text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/plain/launch.h"
#include "core/tensor/tensor.h"

namespace triptych::kernels {

/// The value of one parameter: a number's bytes, or an array and its address.
struct KernelArgument {
  std::string text;
  std::optional<TensorSpec> spec;  ///< of an array
  std::optional<cuda::plain::DeviceMemory> memory;
  bool is_undefined = false;  ///< a new array without numbers, which the kernel may write to
  alignas(16) std::array<std::byte, 16> value{};
};

/// Reads the argument of parameter `number`, from 1. Throws InvalidArgument when it does not fit,
/// IoError for a file that cannot be read.
KernelArgument read_argument(const std::string& text, const cuda::plain::Parameter& parameter,
                             int number, std::uint64_t seed);

}  // namespace triptych::kernels
