// Queue, tokens and dispatch against models of a few lines.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>

#include "Vmmu_dispatch.h"
#include "Vmmu_queue.h"
#include "Vmmu_tokens.h"
#include "systolic/isa/isa.h"
#include "tests/systolic/rtl/clocked.h"

namespace triptych::mmu {
namespace {

enum Status { kRuns, kHalted, kIllegal, kToken, kTimeout };

TEST(Queue, is_a_fifo_of_its_depth) {
  constexpr std::size_t kDepth = 5;
  Clocked<Vmmu_queue> queue;
  std::deque<std::uint32_t> model;
  std::mt19937 random(3);
  queue->clear_i = 1;
  queue.tick();
  queue->clear_i = 0;
  for (int cycle = 0; cycle < 10'000; ++cycle) {
    ASSERT_EQ(queue->full_o != 0, model.size() == kDepth) << cycle;
    ASSERT_EQ(queue->valid_o != 0, !model.empty()) << cycle;
    if (!model.empty()) {
      ASSERT_EQ(element<std::uint32_t>(queue->word_o, 7), model.front());
    }
    const unsigned eager = cycle / 100 % 2 != 0 ? 4 : 1;
    queue->push_i = model.size() < kDepth && random() % 4 < eager;
    queue->pop_i = !model.empty() && random() % 5 >= eager;
    const auto word = static_cast<std::uint32_t>(random());
    set_element(queue->word_i, 7, word);
    if (queue->pop_i) model.pop_front();
    if (queue->push_i) model.push_back(word);
    queue.tick();
  }
}

TEST(Queue, stops_when_it_is_popped_while_empty) {
  Clocked<Vmmu_queue> queue;
  queue->clear_i = 1;
  queue.tick();
  queue->clear_i = 0;
  queue.tick();
  queue->pop_i = 1;
  EXPECT_THAT([&] { queue.tick(); },
              testing::ThrowsMessage<std::runtime_error>(testing::MatchesRegex(
                  "mmu_queue.sv:[0-9]+: Assertion failed in .*queue_is_not_underrun")));
}

TEST(Queue, stops_when_it_is_pushed_while_full) {
  Clocked<Vmmu_queue> queue;
  queue->clear_i = 1;
  queue.tick();
  queue->clear_i = 0;
  queue->push_i = 1;
  for (int i = 0; i < 5; ++i) ASSERT_NO_THROW(queue.tick());
  EXPECT_THAT([&] { queue.tick(); }, testing::ThrowsMessage<std::runtime_error>(
                                         testing::HasSubstr("queue_is_not_overrun")));
}

TEST(Tokens, are_counted_per_giver_and_taker) {
  Clocked<Vmmu_tokens> tokens;
  std::array<std::array<int, 4>, 4> model{};  // [giver][taker]
  std::mt19937 random(5);
  tokens->clear_i = 1;
  tokens.tick();
  tokens->clear_i = 0;
  for (int cycle = 0; cycle < 20'000; ++cycle) {
    const auto give = static_cast<std::uint16_t>(random() & random());
    const auto wait = static_cast<std::uint16_t>(random() & random());
    unsigned missing = 0;
    for (unsigned taker = 0; taker < 4; ++taker)
      for (unsigned giver = 0; giver < 4; ++giver)
        if ((wait >> (4 * taker + giver) & 1) != 0 && model[giver][taker] == 0)
          missing |= 1U << (4 * taker + giver);
    tokens->give_i = give;
    tokens->wait_i = wait;
    tokens.settle();
    ASSERT_EQ(tokens->missing_o, missing) << cycle;
    unsigned pop = 0;
    for (unsigned taker = 0; taker < 4; ++taker)
      if ((missing >> 4 * taker & 0xF) == 0) pop |= 1U << taker;
    tokens->pop_i = pop;
    for (unsigned giver = 0; giver < 4; ++giver)
      for (unsigned taker = 0; taker < 4; ++taker) {
        int& count = model[giver][taker];
        count += give >> (4 * giver + taker) & 1;
        if ((pop >> taker & 1) != 0) count -= wait >> (4 * taker + giver) & 1;
      }
    tokens.tick();
    ASSERT_EQ(tokens->overflow_o, 0);
  }
}

TEST(Tokens, beyond_255_overflow) {
  Clocked<Vmmu_tokens> tokens;
  tokens->clear_i = 1;
  tokens.tick();
  tokens->clear_i = 0;
  tokens->give_i = 1U << (4 * 2 + 3);
  for (int i = 0; i < 255; ++i) tokens.tick();
  EXPECT_EQ(tokens->overflow_o, 0);
  tokens.tick();
  EXPECT_EQ(tokens->overflow_o, 1);
}

class Dispatch : public testing::Test {
 protected:
  Dispatch() {
    dispatch_->rst_ni = 0;
    dispatch_.tick();
    EXPECT_EQ(dispatch_->status_o, kHalted);
    dispatch_->rst_ni = 1;
    dispatch_->start_i = 1;
    dispatch_.tick();
    dispatch_->start_i = 0;
    EXPECT_EQ(dispatch_->status_o, kRuns);
  }
  void offer(const Instruction& instruction) {
    dispatch_->instruction_valid_i = 1;
    std::memcpy(&dispatch_->instruction_i, instruction.words.data(), 32);
    dispatch_.settle();
  }

  Clocked<Vmmu_dispatch> dispatch_;
};

TEST_F(Dispatch, waits_for_room_in_the_unit_s_queue) {
  const Instruction store =
      encode(Store{.count = 1, .rows_left = 1, .columns_left = 1, .columns = 4});
  dispatch_->full_i = 0b1000;
  offer(store);
  EXPECT_EQ(dispatch_->instruction_ready_o, 0);
  EXPECT_EQ(dispatch_->push_o, 0);
  dispatch_->full_i = 0b0111;
  offer(store);
  EXPECT_EQ(dispatch_->instruction_ready_o, 1);
  EXPECT_EQ(dispatch_->push_o, 0b1000);
}

TEST_F(Dispatch, halts_when_all_is_idle) {
  offer(encode_halt());
  EXPECT_EQ(dispatch_->instruction_ready_o, 0);
  dispatch_.tick();
  EXPECT_EQ(dispatch_->status_o, kRuns);
  dispatch_->idle_i = 1;
  dispatch_.tick();
  EXPECT_EQ(dispatch_->status_o, kHalted);
}

TEST_F(Dispatch, stops_at_an_illegal_instruction) {
  offer(encode(Store{.count = 1, .rows_left = 1, .columns_left = 1, .columns = 5}));
  EXPECT_EQ(dispatch_->push_o, 0);
  dispatch_.tick();
  EXPECT_EQ(dispatch_->status_o, kIllegal);
  EXPECT_EQ(dispatch_->instruction_ready_o, 0);
}

TEST_F(Dispatch, stops_when_tokens_overflow) {
  dispatch_->overflow_i = 1;
  dispatch_.tick();
  EXPECT_EQ(dispatch_->status_o, kToken);
}

TEST_F(Dispatch, stops_when_nothing_has_moved_for_65536_cycles) {
  dispatch_->moved_i = 1;
  dispatch_.tick();
  dispatch_->moved_i = 0;
  for (int cycle = 0; cycle < 65'536; ++cycle) dispatch_.tick();
  EXPECT_EQ(dispatch_->status_o, kRuns);
  dispatch_.tick();
  EXPECT_EQ(dispatch_->status_o, kTimeout);
}

}  // namespace
}  // namespace triptych::mmu
