// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_all_reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "core/base/error.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/thread_group.h"

namespace triptych::measure {
namespace {

using parallel::Algorithm;
using Buffers = std::vector<std::vector<float>>;

mmu::MachineConfig machine_of(std::uint32_t arrays) {
  mmu::MachineConfig machine = mmu::find_machine("mmu4-vector");
  machine.arrays = arrays;
  return machine;
}

/// Numbers of any size and sign: subnormals and infinities, too.
Buffers random_buffers(int ranks, std::size_t elements) {
  std::mt19937 random(7);
  Buffers buffers(static_cast<std::size_t>(ranks), std::vector<float>(elements));
  for (auto& buffer : buffers)
    for (float& value : buffer) {
      const auto bits = static_cast<std::uint32_t>(random());
      value = std::bit_cast<float>(random() % 2 == 0 ? bits : (bits & 0x80FFFFFFU) | 0x3F000000U);
    }
  return buffers;
}

Buffers by_threads(Buffers buffers, Algorithm algorithm) {
  parallel::run_ranks(static_cast<int>(buffers.size()), {},
                      [&](parallel::Communicator& communicator) {
                        const auto rank = static_cast<std::size_t>(communicator.rank());
                        communicator.all_reduce(buffers[rank], algorithm, "sums");
                      });
  return buffers;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(ArrayAllReduce, has_the_bits_of_the_ranks_that_are_threads) {
  for (const int ranks : {2, 3, 4, 8})
    for (const auto algorithm :
         {Algorithm::Ring, Algorithm::Direct, Algorithm::Tree, Algorithm::HalvingDoubling}) {
      if (algorithm == Algorithm::HalvingDoubling && !std::has_single_bit(unsigned(ranks)))
        continue;
      const Buffers buffers = random_buffers(ranks, 2603);  // a tile has 2048 values
      const Buffers expected = by_threads(buffers, algorithm);
      const auto found = all_reduce_on_arrays(machine_of(8), algorithm, buffers);
      for (std::size_t r = 0; r < buffers.size(); ++r)
        ASSERT_EQ(bits_of(found.sums[r]), bits_of(expected[r]))
            << to_string(algorithm) << ", rank " << r << " of " << ranks;
      if (algorithm == Algorithm::Ring) {
        EXPECT_GT(found.waits, 0U);
      }
    }
}
TEST(ArrayAllReduce, a_ring_takes_twice_the_ranks_less_one_rounds) {
  for (const int ranks : {2, 4, 8}) {
    const auto found =
        all_reduce_on_arrays(machine_of(8), Algorithm::Ring, random_buffers(ranks, 1024));
    EXPECT_EQ(found.rounds, 2 * (static_cast<std::uint64_t>(ranks) - 1));
  }
}
TEST(ArrayAllReduce, a_machine_that_cannot_sum_is_refused) {
  const Buffers buffers = random_buffers(2, 4);
  EXPECT_THROW(all_reduce_on_arrays(machine_of(1), Algorithm::Ring, buffers), InvalidArgument);
  mmu::MachineConfig machine = machine_of(2);
  machine.vector_rows = 0;
  EXPECT_THROW(all_reduce_on_arrays(machine, Algorithm::Ring, buffers), InvalidArgument);
  machine = machine_of(2);
  machine.dram_bytes = 4096;
  EXPECT_THROW(all_reduce_on_arrays(machine, Algorithm::Ring, random_buffers(2, 1024)),
               InvalidArgument);
}

}  // namespace
}  // namespace triptych::measure
