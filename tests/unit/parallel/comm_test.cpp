// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <latch>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/tensor/dtype.h"
#include "parallel/collectives/symbolic.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/simulated_time.h"
#include "parallel/comm/sum.h"
#include "parallel/comm/thread_group.h"

namespace triptych::parallel {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr Seconds kPatience(0.5);
constexpr CommunicatorOptions kShort = {.timeout = Seconds(1)};

/// Contribution of a rank: small integers with exact sums in every dtype, or, for the order of
/// additions, numbers that round.
template <class T>
std::vector<T> contribution(int rank, std::int64_t elements, bool whole) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<T> values;
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto number = static_cast<int>(random() % 8);
    values.push_back(whole ? T(number) : T(static_cast<float>(random()) * 0x1p-20F - 1000.0F));
  }
  return values;
}

/// Value of a sum of contributions to element i.
template <class T>
T value_of(TermId term, std::size_t i, const Terms& terms,
           const std::vector<std::vector<T>>& inputs) {
  const auto& node = terms.node(term);
  if (node.rank >= 0) return inputs[static_cast<std::size_t>(node.rank)][i];
  const T left = value_of(node.left, i, terms, inputs),
          right = value_of(node.right, i, terms, inputs);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(left + right);
  } else {
    return T(static_cast<float>(left) + static_cast<float>(right));
  }
}

template <class T>
void expect_sums_in_the_order_of_the_schedule(const CollectiveCall& call, int n) {
  std::vector<Schedule> schedules;
  std::vector<std::vector<T>> inputs, outputs;
  for (int rank = 0; rank < n; ++rank) {
    schedules.push_back(PreparedCollective(call, rank, n).schedule());
    inputs.push_back(contribution<T>(rank, call.elements, std::is_integral_v<T>));
  }
  outputs = inputs;
  run_ranks(n, {}, [&](Communicator& communicator) {
    auto prepared = communicator.prepare(call);
    auto& data = outputs[static_cast<std::size_t>(communicator.rank())];
    communicator.run(prepared, reinterpret_cast<std::byte*>(data.data()));
  });
  Terms terms;
  const auto symbols = run_symbolically(schedules, call.elements, terms);
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
    for (std::size_t i = 0; i < outputs[rank].size(); ++i) {
      const T expected = value_of(symbols[rank][i], i, terms, inputs);
      ASSERT_EQ(std::memcmp(&outputs[rank][i], &expected, sizeof(T)), 0)
          << to_string(call.collective) << " by " << to_string(call.algorithm) << " of "
          << call.elements << " " << to_string(call.dtype) << ", rank " << rank << " of " << n
          << ", element " << i;
    }
  }
}

class CommRanks : public testing::TestWithParam<int> {};

TEST_P(CommRanks, every_collective_gives_the_bits_of_its_schedule) {
  const int n = GetParam();
  for (const auto collective : {Collective::AllReduce, Collective::ReduceScatter,
                                Collective::AllGather, Collective::Broadcast}) {
    for (const auto algorithm : algorithms_of(collective)) {
      for (const std::int64_t elements : {0, 1, n - 1, n + 1, 1000, 100'003}) {
        expect_sums_in_the_order_of_the_schedule<float>(
            {.collective = collective, .algorithm = algorithm, .elements = elements}, n);
      }
    }
  }
}

TEST_P(CommRanks, every_dtype_is_added_up) {
  const int n = GetParam();
  for (const auto dtype : kAllDTypes) {
    if (dtype == DType::Bool) continue;
    visit_dtype(dtype, [&]<class T>(T) {
      if constexpr (!std::is_same_v<T, bool>) {
        expect_sums_in_the_order_of_the_schedule<T>({.dtype = dtype, .elements = 1000}, n);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Communicator, CommRanks, testing::Values(1, 2, 3, 4, 5, 8));

TEST(Communicator, sums_are_those_of_every_machine) {
  constexpr float kTiny = 0x1p-126F, kInfinity = std::numeric_limits<float>::infinity();
  std::array<float, 4> sums = {1.5F * kTiny, 0.5F * kTiny, -0.5F * kTiny, kInfinity};
  const std::array<float, 4> others = {-kTiny, kTiny, 0.25F * kTiny, -kInfinity};
  add_to(std::as_writable_bytes(std::span(sums)), std::as_bytes(std::span(others)), DType::F32);
  const auto bits = std::bit_cast<std::array<std::uint32_t, 4>>(sums);
  EXPECT_THAT(bits, testing::ElementsAre(0, 0x00800000, 0, 0x7FC00000));
}

TEST(Communicator, a_collective_runs_again_and_again) {
  run_ranks(3, {}, [](Communicator& communicator) {
    auto prepared = communicator.prepare({.elements = 10});
    for (int i = 0; i < 500; ++i) {
      std::vector<float> data(10, static_cast<float>(communicator.rank() + i));
      communicator.run(prepared, reinterpret_cast<std::byte*>(data.data()));
      ASSERT_THAT(data, testing::Each(static_cast<float>(3 + 3 * i)));
    }
  });
}

/// Runs `body` on three ranks and returns the fault that each of them saw.
std::vector<Fault> faults(const std::function<void(Communicator&)>& body) {
  std::vector<Fault> seen;
  std::mutex mutex;
  EXPECT_ANY_THROW(run_ranks(3, kShort, [&](Communicator& communicator) {
    try {
      body(communicator);
    } catch (const FaultError& error) {
      const std::lock_guard lock(mutex);
      seen.push_back(error.fault());
      throw;
    }
  }));
  return seen;
}

void reduce_all(Communicator& communicator, std::size_t elements = 1000) {
  std::vector<float> data(elements);
  communicator.all_reduce(data, Algorithm::Ring, "gradients");
}

TEST(Communicator, a_rank_that_throws_is_everybody_s_fault) {
  const auto seen = faults([](Communicator& communicator) {
    reduce_all(communicator);
    if (communicator.rank() == 1) throw IoError("no such file");
    reduce_all(communicator);
  });
  ASSERT_EQ(seen.size(), 2);
  for (const auto& fault : seen) {
    EXPECT_EQ(fault.culprit, 1);
    EXPECT_EQ(fault.cause, Cause::Threw);
    EXPECT_EQ(to_string(fault), "rank 1 failed: no such file");
  }
}

TEST(Communicator, a_rank_that_leaves_is_named) {
  const auto seen = faults([](Communicator& communicator) {
    if (communicator.rank() == 2) return;
    reduce_all(communicator);
  });
  ASSERT_EQ(seen.size(), 2);
  for (const auto& fault : seen) {
    EXPECT_EQ(fault.culprit, 2);
    EXPECT_EQ(fault.cause, Cause::Died);
    EXPECT_THAT(to_string(fault),
                HasSubstr("rank 2 ended in all-reduce #1 \"gradients\" (0.00381 MiB), noticed by"));
  }
}

TEST(Communicator, a_rank_that_stalls_is_named_after_the_deadline) {
  const auto seen = faults([](Communicator& communicator) {
    if (communicator.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    reduce_all(communicator);
  });
  ASSERT_EQ(seen.size(), 3) << "the late one learns it too";
  for (const auto& fault : seen) {
    EXPECT_EQ(fault.culprit, 0) << "not rank 1, which waits for it";
    EXPECT_EQ(fault.cause, Cause::Stalled);
    EXPECT_GE(fault.waited.count(), 1);
  }
  EXPECT_THAT(to_string(seen[0]),
              ContainsRegex("stopped answering for [0-9.]+ s in all-reduce #1"));
}

TEST(Communicator, ranks_that_call_different_collectives_are_told) {
  const auto sizes = faults([](Communicator& communicator) {
    reduce_all(communicator, communicator.rank() == 1 ? 999 : 1000);
  });
  ASSERT_EQ(sizes.size(), 3);
  EXPECT_EQ(sizes[0].cause, Cause::Mismatch);
  EXPECT_THAT(to_string(sizes[0]), HasSubstr("disagreed in all-reduce #1 \"gradients\""));
  const auto order = faults([](Communicator& communicator) {
    if (communicator.rank() == 1) communicator.barrier();
    reduce_all(communicator);
  });
  EXPECT_EQ(order.at(0).cause, Cause::Mismatch);
}

TEST(Communicator, subgroups_have_collectives_of_their_own) {
  run_ranks(4, {}, [](Communicator& communicator) {
    const int rank = communicator.rank(), row = rank / 2, column = rank % 2;
    auto rows = communicator.subgroup({2 * row, 2 * row + 1}, 1);
    auto columns = communicator.subgroup({column, column + 2}, 2);
    EXPECT_EQ(rows.rank(), column);
    EXPECT_EQ(columns.rank(), row);
    for (int i = 0; i < 50; ++i) {
      std::vector<float> data(100, static_cast<float>(1 << rank));
      rows.all_reduce(data);
      ASSERT_THAT(data, testing::Each(row == 0 ? 3.0F : 12.0F));
      columns.all_reduce(data);
      ASSERT_THAT(data, testing::Each(15.0F));
      if (rank == 0) communicator.barrier();  // late, and in turn with the groups'
      if (rank != 0) communicator.barrier();
    }
  });
  EXPECT_ANY_THROW(run_ranks(2, kShort, [](Communicator& communicator) {
    communicator.subgroup({0}, 1);  // rank 1 is not in it
  }));
}

TEST(Communicator, messages_pass_one_another) {
  run_ranks(2, {}, [](Communicator& communicator) {
    const int other = 1 - communicator.rank();
    std::array<float, 3> sent = {}, received = {};
    for (float i = 0; i < 100; ++i) {
      sent = {i, i + 1, static_cast<float>(communicator.rank())};
      const auto message = communicator.send(other, std::as_bytes(std::span(sent)), "activations");
      communicator.receive(other, std::as_writable_bytes(std::span(received)), "gradients");
      EXPECT_THAT(received, testing::ElementsAre(i, i + 1, static_cast<float>(other)));
      communicator.wait_taken(other, message, "activations");
    }
    communicator.barrier();
  });
  const auto seen = faults([](Communicator& communicator) {
    std::array<std::byte, 8> bytes = {};
    if (communicator.rank() == 0) communicator.send(1, bytes, "8 bytes");
    if (communicator.rank() == 1) communicator.receive(0, std::span(bytes).first(4), "4 bytes");
    communicator.barrier();
  });
  EXPECT_EQ(seen.at(0).cause, Cause::Mismatch);
  EXPECT_THAT(to_string(seen.at(0)), HasSubstr("rank 0 disagreed in the message \"4 bytes\""));
}

TEST(Communicator, what_must_be_the_same_is_compared) {
  const auto seen = faults([](Communicator& communicator) {
    communicator.require_same(7, "the seed");
    communicator.require_same(communicator.rank() == 1 ? 8 : 7, "the plan");
  });
  ASSERT_EQ(seen.size(), 3);
  for (const auto& fault : seen)
    EXPECT_EQ(
        to_string(fault),
        "rank 1 disagreed in the plan: it is not that of the others; start all ranks with the "
        "same options");
}

void write_for(Seconds time, Communicator& communicator) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    communicator.tell_busy("writing a checkpoint");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Communicator, a_busy_rank_is_waited_for_and_so_is_who_waited_for_it) {
  run_ranks(3, {.timeout = kPatience}, [](Communicator& communicator) {
    if (communicator.rank() == 1) write_for(1.8 * kPatience, communicator);
    communicator.barrier();
  });
}

TEST(Communicator, a_rank_that_hangs_while_it_is_busy_is_named) {
  std::latch named(2);
  std::vector<Fault> faults;
  std::mutex mutex;
  run_ranks(3, {.timeout = kPatience}, [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      write_for(1.2 * kPatience, communicator);
      return named.wait();
    }
    try {
      communicator.barrier();
    } catch (const FaultError& error) {
      const std::lock_guard lock(mutex);
      faults.push_back(error.fault());
    }
    named.count_down();
  });
  ASSERT_EQ(faults.size(), 2);
  for (const auto& fault : faults) {
    EXPECT_EQ(fault.culprit, 1);
    EXPECT_EQ(fault.cause, Cause::Stalled);
    EXPECT_GE(fault.waited, kPatience);
    EXPECT_EQ(fault.detail, "when last heard of it was writing a checkpoint");
  }
}

TEST(SimulatedTime, runs_on_with_computation_and_messages) {
  constexpr double alpha = 1e-3, bandwidth = 1e6;
  SimulatedTime time(Interconnect::ring(2, {alpha, bandwidth}), 0);
  run_ranks(2, {}, [&](Communicator& communicator) {
    communicator.observe(time.observer(communicator.rank()));
    std::vector<float> data(1000);
    time.compute(communicator.rank(), communicator.rank() == 0 ? 1 : 2);
    communicator.all_reduce(data, Algorithm::Ring);
    time.compute(communicator.rank(), 0.5);
  });
  time.advance();
  const double message = alpha + 2000 / bandwidth;  // half of the data, both ways at once
  for (const auto& rank : time.ranks()) EXPECT_NEAR(rank.total_s, 2 + 2 * message + 0.5, 1e-12);
  EXPECT_NEAR(time.ranks()[0].exposed_s(), 1 + 2 * message, 1e-12) << "waits for rank 1";
  EXPECT_NEAR(time.ranks()[1].exposed_s(), 2 * message, 1e-12);
  time.advance();
  EXPECT_NEAR(time.ranks()[1].total_s, 2.5 + 2 * message, 1e-12) << "nothing has happened since";
  run_ranks(2, {}, [&](Communicator& communicator) {
    communicator.observe(time.observer(communicator.rank()));
    time.compute(communicator.rank(), 7);
    communicator.barrier();
  });
  time.discard();
  time.advance();
  EXPECT_NEAR(time.ranks()[1].total_s, 2.5 + 2 * message, 1e-12)
      << "what is discarded took no time";
  EXPECT_NEAR(time.ranks()[1].compute_s, 2.5, 1e-12);
}

TEST(SimulatedTime, collectives_go_on_beside_what_does_not_wait_for_them) {
  constexpr double alpha = 1e-3, bandwidth = 1e6;
  const double all_reduce = 2 * (alpha + 2000 / bandwidth);
  for (const bool overlap : {false, true}) {
    SimulatedTime time(Interconnect::ring(2, {alpha, bandwidth}), 0);
    run_ranks(2, {}, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      communicator.observe(time.observer(rank));
      std::vector<float> data(1000);
      time.compute(rank, 1);
      communicator.all_reduce(data, Algorithm::Ring);
      EXPECT_EQ(time.mark(rank, "gradients"), 1);
      if (!overlap) time.wait(rank, 1);
      time.compute(rank, all_reduce / 2);
      time.wait(rank, 1);
      time.compute(rank, 0.25);
    });
    time.advance();
    const double exposed = overlap ? all_reduce / 2 : all_reduce;
    for (const auto& rank : time.ranks()) EXPECT_NEAR(rank.exposed_s(), exposed, 1e-12);
    const auto& timeline = time.timelines()[1];
    ASSERT_EQ(timeline.collectives.size(), 1);
    EXPECT_EQ(timeline.collectives[0].label, "gradients");
    EXPECT_NEAR(timeline.collectives[0].time.start_s, 1, 1e-12);
    EXPECT_NEAR(timeline.collectives[0].time.end_s, 1 + all_reduce, 1e-12);
    EXPECT_EQ(timeline.computations.size(), 3);
  }
}

TEST(Communicator, booleans_have_no_sum) {
  EXPECT_ANY_THROW(run_ranks(2, kShort, [](Communicator& communicator) {
    auto prepared = communicator.prepare({.dtype = DType::Bool, .elements = 8});
    std::vector<std::byte> data(8);
    communicator.run(prepared, data.data());
  }));
}

}  // namespace
}  // namespace triptych::parallel
