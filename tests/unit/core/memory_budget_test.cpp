// The count of the process's memory and its limit.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory_budget.h"

#include <gmock/gmock.h>

#include <limits>
#include <thread>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/unit/memory_limit.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMebibyte = 1 << 20;

Tensor bytes_of(std::size_t bytes) {
  return Tensor(TensorSpec{DType::U8, Shape{static_cast<std::int64_t>(bytes)}});
}

TEST(MemoryBudget, counts_tensors_while_they_live) {
  const auto before = memory_budget().in_use();
  {
    const auto tensor = bytes_of(3 * kMebibyte);
    const auto counted = memory_budget().in_use() - before;
    EXPECT_GE(counted, 3 * kMebibyte);
    EXPECT_LT(counted, 3 * kMebibyte + 1024);
    auto moved = bytes_of(kMebibyte);
    moved = bytes_of(2 * kMebibyte);
    EXPECT_LT(memory_budget().in_use() - before, 5 * kMebibyte + 2048);
  }
  EXPECT_EQ(memory_budget().in_use(), before);
}

TEST(MemoryBudget, refuses_what_exceeds_the_limit_and_counts_nothing_of_it) {
  const test::MemoryLimit limit(4 * kMebibyte);
  const auto kept = bytes_of(3 * kMebibyte);
  const auto before = memory_budget().in_use();
  try {
    bytes_of(2 * kMebibyte);
    ADD_FAILURE() << "it was allocated";
  } catch (const MemoryLimitError& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs 3 MiB of memory"));
    EXPECT_THAT(error.what(), HasSubstr("the option max-memory"));
  }
  EXPECT_EQ(memory_budget().in_use(), before);
  EXPECT_NO_THROW(bytes_of(kMebibyte / 2));
}

TEST(MemoryBudget, sizes_beyond_all_memory_are_refused_not_wrapped) {
  const auto most = std::numeric_limits<std::size_t>::max();
  EXPECT_FALSE(memory_budget().has_room_for(most));
  EXPECT_THROW(memory_budget().require(most - 1, "it"), MemoryLimitError);
  EXPECT_THROW(allocate_aligned(most - 8), std::bad_alloc);
  EXPECT_EQ(allocate_counted(most), nullptr);
}

TEST(MemoryBudget, blocks_are_counted_until_they_are_freed) {
  const test::MemoryLimit limit(2 * kMebibyte);
  const auto before = memory_budget().in_use();
  void* block = allocate_counted(kMebibyte);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(allocate_counted(kMebibyte), nullptr) << "its own administration lacks";
  void* aligned = allocate_anyway(kMebibyte, 4096);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0u);
  EXPECT_EQ(memory_budget().left(), 0u);
  free_counted(aligned);
  free_counted(block);
  free_counted(nullptr);
  EXPECT_EQ(memory_budget().in_use(), before);
}

TEST(MemoryBudget, a_reservation_ends_with_its_scope) {
  const test::MemoryLimit limit(kMebibyte);
  {
    const MemoryReservation reserved(kMebibyte, "a library");
    EXPECT_THROW(bytes_of(1), MemoryLimitError);
  }
  EXPECT_NO_THROW(bytes_of(1));
}

TEST(MemoryBudget, threads_share_one_count) {
  const auto before = memory_budget().in_use();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) free_counted(allocate_counted(100 + i));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(memory_budget().in_use(), before);
}

TEST(MemoryBudget, the_limit_is_the_machines_memory_unless_it_is_set) {
  EXPECT_GT(physical_memory(), 64 * kMebibyte);
  EXPECT_EQ(memory_budget().limit(), physical_memory());
}

}  // namespace
}  // namespace triptych
