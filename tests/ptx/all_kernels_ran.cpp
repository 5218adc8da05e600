// After all tests: no kernel that nvcc compiled was left out. nvcc registers the kernels when the
// program starts, so that the list cannot miss a new one.
// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <string>

#include "tests/ptx/device.h"

namespace triptych::ptx {
namespace {

std::string plain_name(const std::string& mangled) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr), &std::free);
  if (!name) return mangled;
  return std::regex_replace(std::string(name.get()),
                            std::regex(R"(triptych::|cuda::|gpu::|\(anonymous namespace\)::)"), "");
}

/// Kernels that no case of an operator launches, and why.
struct Unreachable {
  const char* name;
  const char* reason;
};
constexpr Unreachable kUnreachable[] = {
    {"nothing_kernel", "the driver is asked about it; it does nothing"},
    {"arg_max_kernel<bool,", "ArgMax refuses booleans"},
    {"map_fours_kernel<Conversion<float>,", "Cast converts one element per thread"},
    {"max_pool_kernel<true, bool>", "MaxPool refuses booleans"},
    {"max_pool_kernel<false, bool>", "MaxPool refuses booleans"},
    {"transpose_kernel<Vector<unsigned long, 2> >", "no element has 16 bytes"},
};

/// A part of the tests launches a part of the kernels.
bool runs_all_tests() {
  const auto& filter = GTEST_FLAG_GET(filter);
  return filter.empty() || filter == "*";
}

class AllKernelsRan : public testing::Environment {
  void TearDown() override {
    if (!runs_all_tests()) return;
    // A kernel of a header is there once for each source that includes it.
    std::map<std::string, std::uint64_t> launches;
    for (const auto* kernel : Device::instance().kernels()) {
      launches[plain_name(kernel->name())] += kernel->launches;
    }
    EXPECT_GT(launches.size(), 100U) << "nvcc's code registers them";
    for (const auto& [name, count] : launches) {
      const auto* known = std::ranges::find_if(kUnreachable, [&](const Unreachable& one) {
        return name.find(one.name) != std::string::npos;
      });
      const bool is_known = known != std::end(kUnreachable);
      EXPECT_NE(count != 0, is_known)
          << name << (is_known ? " ran, but is listed as unreachable" : " never ran");
    }
  }
};

const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new AllKernelsRan);

}  // namespace
}  // namespace triptych::ptx
