// Ranks with GPUs and NCCL between them, played on the host (fake_gpu.h): the bits of threads, no
// order that blocks, and faults that are the same on all ranks.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "parallel/comm/gpu_memory.h"
#include "parallel/comm/nccl_group.h"
#include "parallel/comm/nccl_links.h"
#include "parallel/comm/thread_group.h"
#include "tests/unit/parallel/fake_gpu/fake_gpu.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

using Body = std::function<void(Communicator&)>;

constexpr Seconds kDeadline(1), kGrace(2);

std::vector<float> numbers(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = 1.0F / static_cast<float>(1 + (i * 7 + static_cast<std::size_t>(rank) * 13) % 101);
  return values;
}

void on_gpus(int ranks, const Body& body) {
  fake_gpu::reset(ranks);
  {
    const auto group = open_nccl_group(ranks, kDeadline);
    run_ranks(*group, body);
  }
  EXPECT_EQ(fake_gpu::live_allocations(), 0U);
  EXPECT_EQ(fake_gpu::wrong_calls(), 0);
  EXPECT_EQ(fake_gpu::aborted_communicators(), ranks);
}

/// The sums of all ranks, by rank. They must be equal.
std::vector<float> sum_of(int ranks, std::size_t count, Algorithm algorithm, bool gpus) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  const Body body = [&](Communicator& communicator) {
    auto data = numbers(communicator.rank(), count);
    communicator.all_reduce(data, algorithm);
    results[static_cast<std::size_t>(communicator.rank())] = data;
  };
  gpus ? on_gpus(ranks, body) : run_ranks(ranks, {kDeadline}, body);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  return results[0];
}

TEST(Nccl, sums_have_the_bits_of_threads) {
  for (const int ranks : {1, 2, 3, 4})
    for (const std::size_t count : {0, 1, 5, 1000, 10007})
      for (const auto algorithm :
           {Algorithm::Direct, Algorithm::Ring, Algorithm::Tree, Algorithm::HalvingDoubling})
        EXPECT_EQ(sum_of(ranks, count, algorithm, true), sum_of(ranks, count, algorithm, false))
            << ranks << " ranks, " << count << " elements, " << to_string(algorithm);
}

TEST(Nccl, its_own_all_reduce_can_be_chosen) {
  for (const int ranks : {2, 4})
    EXPECT_EQ(sum_of(ranks, 1000, Algorithm::Library, true),
              sum_of(ranks, 1000, Algorithm::Direct, false));
}

TEST(Nccl, data_of_the_gpu_stay_there) {
  on_gpus(3, [](Communicator& communicator) {
    auto& memory = communicator.memory();
    EXPECT_FALSE(memory.on_host());
    EXPECT_EQ(communicator.transport_name(), "nccl");
    const auto own = numbers(communicator.rank(), 500);
    const auto buffer = memory.allocate(own.size() * sizeof(float));
    memory.write(buffer->bytes(), std::as_bytes(std::span(own)));
    auto call = communicator.prepare({.algorithm = Algorithm::Ring, .elements = 500});
    for (int i = 0; i < 3; ++i) communicator.run_in_place(call, buffer->bytes().data());
    memory.scale(buffer->bytes(), 0.5F);
    std::vector<float> result(own.size());
    memory.read(std::as_writable_bytes(std::span(result)), buffer->bytes());
    EXPECT_NEAR(result[0], (numbers(0, 1)[0] + numbers(1, 1)[0] + numbers(2, 1)[0]) * 4.5F, 1e-4F);
  });
}

TEST(GpuMemory, a_new_buffer_is_clear_and_stays_what_is_written_into_it) {
  fake_gpu::reset(1);
  {
    const auto memory = open_gpu_memory(0);
    const auto buffer = memory->allocate(8);
    std::array<std::byte, 8> read = {};
    memory->write(buffer->bytes().first(2), std::array{std::byte{1}, std::byte{2}});
    memory->read(read, buffer->bytes());
    EXPECT_EQ(read, (std::array<std::byte, 8>{std::byte{1}, std::byte{2}}));
  }
  EXPECT_EQ(fake_gpu::live_allocations(), 0U);
}

TEST(Nccl, messages_pass_one_another_and_arrive_in_order) {
  on_gpus(3, [](Communicator& communicator) {
    constexpr std::size_t messages = 60;
    const int rank = communicator.rank();
    const int next = (rank + 1) % 3, last = (rank + 2) % 3;
    std::vector<std::vector<float>> sent;
    std::vector<std::uint64_t> numbers_of;
    sent.reserve(messages);
    numbers_of.reserve(messages);
    const auto message = [](int sender, std::size_t i) {
      return std::vector<float>(100, static_cast<float>(1000 * sender) + static_cast<float>(i));
    };
    for (std::size_t i = 0; i < messages; ++i) sent.push_back(message(rank, i));
    for (const auto& own : sent)
      numbers_of.push_back(communicator.send(next, std::as_bytes(std::span(own)), "a"));
    for (std::size_t i = 0; i < messages; ++i) {
      std::vector<float> received(100);
      communicator.receive(last, std::as_writable_bytes(std::span(received)), "a");
      EXPECT_EQ(received, message(last, i));
    }
    for (const auto number : numbers_of) communicator.wait_taken(next, number, "a");
    communicator.barrier();
  });
}

TEST(Nccl, strategies_train_to_the_bits_of_threads) {
  for (const auto* strategy : {"dp", "zero3", "pipeline:2", "ps-sync"}) {
    fake_gpu::reset(2);
    const auto threads = train_ranks(strategy, 2, "rank-ordered");
    const auto group = open_nccl_group(2, Seconds(30));
    const auto gpus = train_group(*group, strategy, "rank-ordered");
    for (std::size_t rank = 0; rank < threads.size(); ++rank) {
      EXPECT_EQ(gpus[rank].losses, threads[rank].losses) << strategy;
      for (const auto& [name, state] : threads[rank].states)
        EXPECT_TRUE(std::ranges::equal(state.bytes(), gpus[rank].states.at(name).bytes()))
            << strategy << ' ' << name;
    }
    EXPECT_EQ(fake_gpu::wrong_calls(), 0);
  }
}

/// Errors of the ranks. Nothing for one that ended by itself.
struct Ends {
  std::vector<std::optional<Fault>> faults;
  Seconds took;
};

Ends ends_of(int ranks, const Body& body) {
  fake_gpu::reset(ranks);
  Ends ends;
  ends.faults.resize(static_cast<std::size_t>(ranks));
  const auto start = std::chrono::steady_clock::now();
  {
    const auto group = open_nccl_group(ranks, kDeadline);
    std::vector<std::jthread> threads;
    threads.reserve(ends.faults.size());
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Communicator communicator(group->transport(rank));
        try {
          body(communicator);
        } catch (const FaultError& error) {
          ends.faults[static_cast<std::size_t>(rank)] = error.fault();
        }
      });
    }
  }
  ends.took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(fake_gpu::live_allocations(), 0U);
  EXPECT_EQ(fake_gpu::aborted_communicators(), ranks);
  return ends;
}

void expect_same_fault(const Ends& ends, Cause cause, int culprit, const char* says) {
  const Fault* first = nullptr;
  for (const auto& fault : ends.faults) {
    ASSERT_TRUE(fault);
    if (first == nullptr) first = &*fault;
    EXPECT_EQ(to_string(*fault), to_string(*first));
  }
  EXPECT_EQ(first->cause, cause) << to_string(*first);
  EXPECT_EQ(first->culprit, culprit) << to_string(*first);
  EXPECT_NE(to_string(*first).find(says), std::string::npos) << to_string(*first);
  // How soon, wants an idle machine.
  if (std::getenv("TRIPTYCH_TIMED") == nullptr) return;
  EXPECT_LT(ends.took, kDeadline + kGrace);
}

TEST(Nccl, a_link_that_does_not_move_a_message_is_named_in_time) {
  for (const int ranks : {2, 4}) {
    const auto ring = ends_of(ranks, [&](Communicator& communicator) {
      std::vector<float> data(1000, 1);
      for (int i = 0; i < 20; ++i) {
        if (i == 5 && communicator.rank() == 1) fake_gpu::cut_link(0, 1);
        communicator.all_reduce(data, Algorithm::Ring, "gradients");
      }
    });
    expect_same_fault(ring, Cause::Lost, 0, "nccl did not move it to rank 1: not within 1.");
  }
}

bool until(const std::function<bool()>& done) {
  for (int i = 0; i < 100; ++i)
    if (done()) return true;
  return false;
}

TEST(Nccl, a_message_has_arrived_when_one_begun_after_it_does_not_move) {
  fake_gpu::reset(2);
  NcclLinks links(2, kDeadline);
  const auto first = links.memory(0).allocate(8), second = links.memory(1).allocate(8);
  const auto source = links.memory(0).allocate(8);
  ASSERT_TRUE(until([&] { return links.try_move(1, 0, first->bytes(), second->bytes()); }));
  fake_gpu::cut_link(0, 1);
  ASSERT_TRUE(until([&] { return links.try_move(0, 1, second->bytes(), source->bytes()); }));
  EXPECT_TRUE(until([&] { return links.arrived(0); }));
  EXPECT_FALSE(until([&] { return links.arrived(1); }));
  const auto link = links.oldest_under_way();
  ASSERT_TRUE(link);
  EXPECT_EQ(link->from, 0);
  EXPECT_EQ(link->to, 1);
}

TEST(Nccl, a_message_under_way_does_not_fail_the_next_launch) {
  fake_gpu::reset(2);
  NcclLinks links(2, kDeadline);
  const auto source = links.memory(0).allocate(8), target = links.memory(1).allocate(8);
  const auto other = links.memory(1).allocate(8);
  fake_gpu::cut_link(0, 1);
  ASSERT_TRUE(until([&] { return links.try_move(0, 1, target->bytes(), source->bytes()); }));
  EXPECT_FALSE(until([&] { return links.arrived(1); }));
  EXPECT_NO_THROW(links.memory(1).add(other->bytes(), other->bytes(), DType::F32));
  EXPECT_TRUE(links.oldest_under_way());
  EXPECT_NO_THROW(links.memory(1).scale(other->bytes(), 0.5F));
}

TEST(Nccl, an_error_of_its_own_is_told_at_once) {
  const auto ends = ends_of(3, [](Communicator& communicator) {
    std::vector<float> data(1000, 1);
    for (int i = 0; i < 1000; ++i) {
      if (i == 5 && communicator.rank() == 1) fake_gpu::fail_communicator(2);
      communicator.all_reduce(data, Algorithm::Direct, "gradients");
    }
  });
  ASSERT_TRUE(ends.faults[0]);
  expect_same_fault(ends, Cause::Lost, ends.faults[0]->culprit, "network error");
  EXPECT_LT(ends.took, kDeadline) << "not by waiting";
}

TEST(Nccl, a_rank_that_stalls_in_the_librarys_sum_is_named) {
  const auto ends = ends_of(3, [](Communicator& communicator) {
    std::vector<float> data(1000, 1);
    communicator.all_reduce(data, Algorithm::Library, "first");
    if (communicator.rank() == 2) std::this_thread::sleep_for(kDeadline + kGrace / 2);
    communicator.all_reduce(data, Algorithm::Library, "second");
  });
  expect_same_fault(ends, Cause::Stalled, 2, "in all-reduce #2 \"second\"");
}

TEST(Nccl, a_rank_that_calls_something_else_is_found_before_data_move) {
  const auto ends = ends_of(2, [](Communicator& communicator) {
    std::vector<float> data(communicator.rank() == 0 ? 10 : 11, 1);
    communicator.all_reduce(data, Algorithm::Ring);
  });
  ASSERT_TRUE(ends.faults[0]);
  EXPECT_EQ(ends.faults[0]->cause, Cause::Mismatch);
  EXPECT_EQ(fake_gpu::wrong_calls(), 0);
}

TEST(Nccl, every_rank_needs_a_gpu) {
  fake_gpu::reset(0);
  EXPECT_THROW(open_nccl_group(2, kDeadline), DeviceError);
  fake_gpu::reset(1);
  try {
    open_nccl_group(2, kDeadline);
    ADD_FAILURE();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "2 ranks over nccl need as many GPUs, and there is 1; ask for fewer ranks");
  }
  fake_gpu::reset(2);
  fake_gpu::never_connect();
  EXPECT_THROW(open_nccl_group(2, Seconds(0.1)), CommError);
  EXPECT_EQ(fake_gpu::aborted_communicators(), 2);
}

}  // namespace
}  // namespace triptych::parallel
