// Calls of kernels whose types only the compiler knows. A kernel's function on the host, which
// clang writes for <<< >>>, has the kernel's own parameters and hands them on one by one. Called
// with registers and a stack of known patterns, it tells where the calling convention puts each
// byte of each parameter. From that, a call is built for any values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triptych::cuda::program {

/// Registers that hold arguments on x86-64: six general ones and eight vectors.
struct ArgumentRegisters {
  std::array<std::uint64_t, 6> general{};
  std::array<std::uint64_t, 16> vectors{};
};

/// Where a call's convention expects the bytes of one parameter.
struct ParameterPlace {
  std::size_t bytes = 0;
  std::size_t offset = 0;            ///< among the packed parameters
  bool by_address = false;           ///< the place holds the address of a copy
  std::vector<std::size_t> byte_at;  ///< for each byte, in registers and then the stack. kPadding
};
inline constexpr std::size_t kPadding = ~std::size_t{0};

/// Most bytes of parameters that a kernel may have, as from CUDA 12.1 on.
inline constexpr std::size_t kMostParameterBytes = 32764;

using ParameterPlaces = std::vector<ParameterPlace>;

/// Learns the places from a kernel's function on the host, which calls probe_argument.
ParameterPlaces probe_parameters(const void* stub);
/// True while the calling thread of the processor is inside of probe_parameters.
bool is_probing();
/// A parameter of the function that is probed.
void probe_argument(const void* value, std::size_t bytes, std::size_t offset);

/// Arguments of a launch, ready for calls by many threads.
class KernelCall {
 public:
  /// values[i] points at the value of parameter i.
  KernelCall(const ParameterPlaces& places, std::span<const void* const> values);

  /// Calls the kernel for the running thread, with copies of the arguments of its own.
  void run(const void* kernel) const;

 private:
  struct ByAddress {
    std::size_t place = 0, copy = 0;
  };

  ArgumentRegisters registers_;
  std::vector<std::byte> stack_, copies_;
  std::vector<ByAddress> by_address_;
};

}  // namespace triptych::cuda::program
