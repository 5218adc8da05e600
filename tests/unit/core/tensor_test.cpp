// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace triptych {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<double> round_trip(DType dtype, std::vector<double> values) {
  const TensorSpec spec{dtype, Shape{static_cast<std::int64_t>(values.size())}};
  return to_doubles(from_doubles(spec, values));
}

TEST(DType, has_a_name_that_finds_it) {
  for (const auto dtype : kAllDTypes) EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  EXPECT_THROW(dtype_from_string("f64"), InvalidArgument);
}

TEST(DType, is_visited_as_the_type_that_stores_it) {
  for (const auto dtype : kAllDTypes) {
    visit_dtype(dtype, [&](auto tag) {
      EXPECT_EQ(dtype_of<decltype(tag)>, dtype);
      EXPECT_EQ(sizeof(tag), dtype_size(dtype));
    });
  }
}

TEST(TensorSpec, prints_dtype_and_shape) {
  EXPECT_EQ(to_string(TensorSpec{DType::BF16, {1, 8}}), "bf16[1, 8]");
}

TEST(TensorSpec, refuses_bytes_that_overflow) {
  const TensorSpec spec{DType::F32, Shape{std::int64_t{1} << 62}};
  EXPECT_THROW(spec.bytes(), InvalidArgument);
}

TEST(Tensor, starts_as_aligned_zeros) {
  const Tensor tensor({DType::F32, {3, 5}});
  EXPECT_THAT(tensor.as<float>(), Each(0.0F));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % kAlignment, 0U);
}

TEST(Tensor, may_be_empty) {
  const Tensor tensor({DType::I64, {0, 5}});
  EXPECT_EQ(tensor.elements(), 0);
  EXPECT_TRUE(tensor.bytes().empty());
}

TEST(Tensor, refuses_another_count_of_values) {
  EXPECT_THROW(Tensor({2, 2}, std::vector<float>{1, 2, 3}), InvalidArgument);
}

TEST(Tensor, refuses_to_be_read_as_another_type) {
  const Tensor tensor({DType::F32, {2}});
  EXPECT_THROW(tensor.as<std::int32_t>(), InvalidArgument);
}

TEST(Tensor, is_copied_only_by_clone) {
  static_assert(!std::is_copy_constructible_v<Tensor>);
  Tensor tensor({2}, std::vector<float>{1, 2});
  const Tensor copy = tensor.clone();
  tensor.as<float>()[0] = 9;
  EXPECT_THAT(copy.as<float>(), ElementsAre(1, 2));
}

TEST(Tensor, keeps_its_data_under_another_shape) {
  const Tensor tensor = Tensor({2, 2}, std::vector<float>{1, 2, 3, 4}).reshaped({4});
  EXPECT_EQ(tensor.shape(), Shape{4});
  EXPECT_THAT(tensor.as<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THROW(Tensor({DType::F32, {4}}).reshaped({5}), InvalidArgument);
}

TEST(Tensor, of_one_value_is_a_scalar) {
  const auto scalar = scalar_tensor(std::int64_t{7});
  EXPECT_EQ(scalar.spec(), (TensorSpec{DType::I64, {}}));
  EXPECT_THAT(to_doubles(scalar), ElementsAre(7));
}

TEST(FromDoubles, keeps_what_the_dtype_holds) {
  for (const auto dtype : kAllDTypes) {
    EXPECT_THAT(round_trip(dtype, {0, 1}), ElementsAre(0, 1)) << to_string(dtype);
    if (dtype == DType::Bool) continue;
    EXPECT_THAT(round_trip(dtype, {100}), ElementsAre(100)) << to_string(dtype);
  }
}

TEST(FromDoubles, truncates_and_saturates_integers) {
  EXPECT_THAT(round_trip(DType::I8, {1.9, -1.9, 300, -300}), ElementsAre(1, -1, 127, -128));
  EXPECT_THAT(round_trip(DType::U8, {-5, 255.5, 1e30}), ElementsAre(0, 255, 255));
  EXPECT_THAT(round_trip(DType::I32, {std::nan("")}), ElementsAre(0));
  EXPECT_THAT(round_trip(DType::I64, {1e300, -1e300}), ElementsAre(0x1p63, -0x1p63));
}

TEST(FromDoubles, rounds_floats_to_nearest_even) {
  EXPECT_THAT(round_trip(DType::BF16, {1 + 0x1p-8, 1 + 3 * 0x1p-8}), ElementsAre(1, 1 + 0x1p-6));
  EXPECT_THAT(round_trip(DType::F16, {2049, 2051}), ElementsAre(2048, 2052));
  EXPECT_THAT(round_trip(DType::Bool, {0.5, -3}), ElementsAre(1, 1));
}

#if defined(__linux__)
/// The flags of the system for the mapping that contains `address`. Empty: unknown.
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      inside = begin <= wanted && wanted < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return {};
}

TEST(AllocateAligned, asks_for_huge_pages_of_large_blocks) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "this system has no huge pages for the asking";
  }
  const auto large = allocate_aligned(std::size_t{64} << 20U);
  const auto flags = mapping_flags(large.get() + (std::size_t{32} << 20U));
  if (flags.empty()) GTEST_SKIP() << "this system does not tell the flags of mappings";
  EXPECT_THAT(flags, testing::HasSubstr(" hg "));
}
#endif

}  // namespace
}  // namespace triptych
