// Sums of several sequences at once have the bits of the stated tree, in the twin.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_tree.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

struct SumCase {
  std::uint32_t columns, block_rows;
  std::uint32_t sequences, at_once;
  std::int64_t stride;
  std::vector<std::int64_t> rows;  ///< lengths, one behind the other in a sequence
};

const SumCase kCases[] = {
    {4, 96, 5, 4, 70, {70}},       {4, 96, 7, 3, 8, {8}},     {20, 96, 6, 6, 100, {40, 40}},
    {64, 64, 9, 4, 1500, {1500}},  {64, 64, 3, 2, 64, {64}},  {64, 64, 5, 5, 2048, {2048}},
    {128, 40, 33, 32, 96, {96}},   {128, 40, 4, 4, 33, {33}}, {128, 40, 6, 4, 4096, {1024, 1024}},
    {4, 16, 3, 2, 1024, {1024, 7}}};

std::vector<TreeBlock> blocks_of(const SumCase& test) {
  std::vector<TreeBlock> blocks;
  std::int64_t first = 0;
  for (const std::int64_t length : test.rows) {
    append_blocks(first, length, blocks);
    first += length;
  }
  return blocks;
}

float expected_sum(const SumCase& test, const std::vector<float>& x, std::uint32_t sequence) {
  TreeFold<SumOf<float>> tree;
  for (const TreeBlock& block : blocks_of(test)) {
    const auto* values = x.data() + block.first + sequence * test.stride;
    tree.push(fold_block(
        block.count, [=](auto i) { return values[i] + static_cast<float>(sequence); },
        SumOf<float>()));
  }
  return tree.result();
}

/// The machine's DRAM holds the values, then a row for the tree, a number per sequence, the sums.
std::vector<float> sums_of(const SumCase& test, const std::vector<float>& x) {
  mmu::MachineConfig config = mmu::find_machine("mmu4-vector");
  config.columns = test.columns;
  config.vector_rows = 2048;
  const auto machine = mmu::open_machine(config, mmu::Simulation::Twin);
  const std::uint64_t scratch = 4 * x.size(), numbers = scratch + std::uint64_t{4} * test.columns;
  const std::uint64_t results = numbers + std::uint64_t{4} * test.sequences;
  std::memcpy(machine->dram().data(), x.data(), 4 * x.size());
  for (std::uint32_t s = 0; s < test.sequences; ++s) {
    const auto number = static_cast<float>(s);
    std::memcpy(machine->dram().data() + numbers + 4 * s, &number, 4);
  }
  VectorProgram program(config, test.block_rows);
  const VectorBlock total = program.allocate(test.sequences);
  const VectorBlock number = program.allocate(test.sequences);
  program.use_rows(test.sequences);
  program.load_rows(numbers, 4, test.sequences, 1, number);
  program.broadcast(number, number);
  VectorTree tree(program, {0}, 1, scratch);
  tree.sum(blocks_of(test), {test.sequences, test.stride, test.at_once},
           [&](const SequenceRows& sequences, auto operands, auto terms) {
             program.apply(mmu::VectorOperation::Add, terms[0], operands[0], sequences.of(number));
           },
           {&total, 1});
  program.store_rows(total, test.sequences, 1, results, 4);
  const mmu::Program finished = program.finish();
  mmu::verify(finished, config);
  machine->run(finished);
  std::vector<float> sums(test.sequences);
  std::memcpy(sums.data(), machine->dram().data() + results, 4 * sums.size());
  return sums;
}

TEST(VectorTree, sums_of_several_sequences_have_the_bits_of_the_stated_tree) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (const SumCase& test : kCases) {
    const auto last = blocks_of(test).back();
    const std::int64_t length = last.first + last.count + (test.sequences - 1) * test.stride;
    std::vector<float> x(static_cast<std::size_t>(length));
    for (float& value : x) value = numbers(random);
    const auto sums = sums_of(test, x);
    for (std::uint32_t s = 0; s < test.sequences; ++s)
      EXPECT_EQ(sums[s], expected_sum(test, x, s))
          << test.columns << " columns, stride " << test.stride << ", sequence " << s;
  }
}

}  // namespace
}  // namespace triptych::systolic
