// Runs PTX written for a test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/ptx/machine.h"

namespace triptych::ptx {

/// A kernel `test` of that body, with the parameter `out`. Its registers are %r, %f, %rd, %d, %rs
/// and %p, 64 of each. Words of global memory come back.
class Bench {
 public:
  explicit Bench(const std::string& body, const std::string& variables = "")
      : text_(fmt::format(
            ".version 9.0\n.target sm_90a\n.address_size 64\n"
            ".extern .shared .align 1024 .b8 dynamic[];\n"
            ".entry test(.param .u64 out) {{\n"
            ".reg .pred %p<64>; .reg .b16 %rs<64>; .reg .b32 %r<64>;\n"
            ".reg .f32 %f<300>; .reg .b64 %rd<64>; .reg .f64 %d<64>;\n{}\n{}\nret;\n}}\n",
            variables, body)),
        module_(text_),
        program_(make_program(module_.read("test"), {{"dynamic", kDynamicShared}})) {}

  /// Lets `out` start at a multiple of that many bytes. How many words of `memory` lie before it.
  std::size_t align(std::size_t bytes) {
    const auto past = reinterpret_cast<std::uint64_t>(memory.data()) % bytes;
    skipped_ = (bytes - past) % bytes / sizeof(std::uint32_t);
    return skipped_;
  }

  std::vector<std::uint32_t> run(std::uint32_t threads, std::size_t words,
                                 std::size_t shared_bytes = 0) {
    if (memory.size() < skipped_ + words) memory.resize(skipped_ + words);
    global.add(memory.data(), memory.size() * sizeof(std::uint32_t));
    const auto address = reinterpret_cast<std::uint64_t>(memory.data() + skipped_);
    std::vector<std::byte> parameters(sizeof address);
    std::memcpy(parameters.data(), &address, sizeof address);
    ptx::run({*program_, global, {}, {threads}, shared_bytes, std::move(parameters)});
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(skipped_);
    return {begin, begin + static_cast<std::ptrdiff_t>(words)};
  }

  std::vector<std::uint32_t> memory;  ///< content of `out`, filled before if a test needs it
  GlobalMemory global;

 private:
  std::size_t skipped_ = 0;
  std::string text_;
  ModuleText module_;
  std::unique_ptr<Program> program_;
};

/// Words of a Fault. Empty when there is none.
template <class F>
std::string fault_of(F&& f) {
  try {
    f();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return {};
}

}  // namespace triptych::ptx
