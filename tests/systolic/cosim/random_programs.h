// The options of the co-simulations, --programs N and --seed S, and their main function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace triptych::mmu {

/// Random programs of a test: a seed each, consecutive ones.
struct RandomPrograms {
  std::uint32_t count = 0, first_seed = 1;
  std::uint32_t end() const { return first_seed + count; }
};
inline RandomPrograms random_programs;

/// The whole of `text` as a number.
inline bool read_number(const char* text, std::uint32_t& number) {
  const char* const end = text + std::strlen(text);
  const auto [read, error] = std::from_chars(text, end, number);
  return error == std::errc() && read == end;
}

/// The exit status: that of the tests, or 2 with a message for another option. `count`: programs
/// without --programs.
inline int run_tests_of_random_programs(int argc, char** argv, std::uint32_t count) {
  testing::InitGoogleTest(&argc, argv);
  random_programs.count = count;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    std::uint32_t* const value = name == "--programs" ? &random_programs.count
                                 : name == "--seed"   ? &random_programs.first_seed
                                                      : nullptr;
    if (value != nullptr && i + 1 < argc && read_number(argv[i + 1], *value)) continue;
    fmt::print(stderr, "{}: '{}' is no option with a number; use --programs N or --seed S\n",
               argv[0], name);
    return 2;
  }
  return RUN_ALL_TESTS();
}

}  // namespace triptych::mmu
