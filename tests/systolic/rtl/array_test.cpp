// The fast array equals the textbook grid of PEs in every cycle, for any input.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "Varray_bf16_1.h"
#include "Varray_bf16_2.h"
#include "Varray_bf16_3.h"
#include "Varray_int8_1.h"
#include "Varray_int8_2.h"
#include "Varray_int8_3.h"
#include "tests/systolic/rtl/clocked.h"

namespace {

template <class Port>
void randomise(Port& port, std::mt19937_64& random, std::size_t bits) {
  std::uint64_t words[8];
  for (std::uint64_t& word : words) word = random();
  std::memcpy(&port, words, sizeof(Port));
  if (const std::size_t spare = sizeof(Port) * 8 - bits; spare > 0)
    reinterpret_cast<unsigned char*>(&port)[sizeof(Port) - 1 - spare / 8] &=
        static_cast<unsigned char>(0xFF >> spare % 8);
}

template <class Model>
void compare(std::size_t act_bits, std::size_t weight_bits) {
  Clocked<Model> array;
  std::mt19937_64 random(1);
  int different = 0;
  for (int cycle = 0; cycle < 20'000; ++cycle) {
    array->enable_i = random() % 8 != 0;
    array->moving_i = random() % 8 != 0;
    randomise(array->act_i, random, act_bits);
    randomise(array->weight_i, random, weight_bits);
    randomise(array->psum_i, random, 96);
    array->swap_i = random() & random() & 0xF;
    array->capture_i = random() & random() & 0xF;
    array.tick();
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(element<std::uint32_t>(array->block_o, c), element<std::uint32_t>(array->grid_o, c))
          << "cycle " << cycle << " column " << c;
      different += element<std::uint32_t>(array->block_o, c) != 0x7FC00000 ? 1 : 0;
    }
  }
  EXPECT_GT(different, 10'000) << "nearly all sums were NaN: the comparison is empty";
}

TEST(Array, equals_the_grid_for_bf16) { compare<Varray_bf16_1>(64, 51); }
TEST(Array, equals_the_grid_for_bf16_of_two_stages) { compare<Varray_bf16_2>(64, 51); }
TEST(Array, equals_the_grid_for_bf16_of_three_stages) { compare<Varray_bf16_3>(64, 51); }
TEST(Array, equals_the_grid_for_int8) { compare<Varray_int8_1>(32, 27); }
TEST(Array, equals_the_grid_for_int8_of_two_stages) { compare<Varray_int8_2>(32, 27); }
TEST(Array, equals_the_grid_for_int8_of_three_stages) { compare<Varray_int8_3>(32, 27); }

}  // namespace
