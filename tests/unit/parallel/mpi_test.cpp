// Processes under mpirun: the bits of threads, for every collective, algorithm, size and dtype.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/comm/mpi_control.h"
#include "parallel/comm/mpi_session.h"
#include "parallel/comm/thread_group.h"

namespace triptych::parallel {
namespace {

MpiSession* session = nullptr;

constexpr Seconds kTimeout(20);  // processes share few cores here

std::vector<std::byte> contribution(const CollectiveCall& call, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<std::byte> bytes;
  visit_dtype(call.dtype, [&]<class T>(T) {
    // Sums of integers are exact in any order. Those of floats round, and so show it.
    const auto draw = [&] {
      const auto bits = random();
      return std::is_integral_v<T> ? static_cast<float>(bits % 8)
                                   : static_cast<float>(bits) * 0x1p-20F - 1000.0F;
    };
    for (std::int64_t i = 0; i < call.elements; ++i) {
      const T value(draw());
      const auto part = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
  });
  return bytes;
}

/// Result of each of this many threads. This process's rank is requested.
std::vector<std::byte> on_threads(const CollectiveCall& call) {
  std::vector<std::byte> own;
  run_ranks(session->world_size(), {kTimeout}, [&](Communicator& communicator) {
    auto data = contribution(call, communicator.rank());
    auto prepared = communicator.prepare(call);
    communicator.run(prepared, data.data());
    if (communicator.rank() == session->rank()) own = std::move(data);
  });
  return own;
}

void expect_bits_of_threads(Communicator& communicator, const CollectiveCall& call) {
  auto data = contribution(call, communicator.rank());
  auto prepared = communicator.prepare(call);
  communicator.run(prepared, data.data());
  EXPECT_EQ(data, on_threads(call))
      << to_string(call.collective) << " by " << to_string(call.algorithm) << " of "
      << call.elements << " " << to_string(call.dtype) << ", rank " << communicator.rank();
}

TEST(Mpi, every_collective_has_the_bits_of_threads) {
  Communicator communicator(session->transport(kTimeout));
  const int n = communicator.world_size();
  ASSERT_EQ(communicator.transport_name(), "mpi");
  for (const auto collective : {Collective::AllReduce, Collective::ReduceScatter,
                                Collective::AllGather, Collective::Broadcast}) {
    for (const auto algorithm : algorithms_of(collective)) {
      for (const std::int64_t elements : {0, 1, n - 1, n + 1, 1000, 100'003}) {
        expect_bits_of_threads(
            communicator, {.collective = collective, .algorithm = algorithm, .elements = elements});
      }
    }
  }
}

TEST(Mpi, every_dtype_is_added_up) {
  Communicator communicator(session->transport(kTimeout));
  for (const auto dtype : kAllDTypes)
    if (dtype != DType::Bool)
      expect_bits_of_threads(communicator, {.dtype = dtype, .elements = 3000});
}

TEST(Mpi, groups_follow_one_another) {
  for (int group = 0; group < 5; ++group) {
    Communicator communicator(session->transport(kTimeout));
    std::vector<float> data(5000, static_cast<float>(communicator.rank() + group));
    for (int i = 0; i < 20; ++i) communicator.barrier();
    communicator.all_reduce(data);
    const int n = communicator.world_size();
    EXPECT_THAT(data, testing::Each(static_cast<float>(n * (n - 1) / 2 + n * group)));
  }
}

TEST(Mpi, processes_that_ended_before_they_were_watched_have_ended) {
  ProcessWatch watch;
  auto process = ProcessIdentity::of_this_process();
  watch.add(1, process);
  const auto child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  process.number = child;
  watch.add(2, process);
  process.boot = {};
  watch.add(3, process);
  EXPECT_THAT(watch.ended(), testing::ElementsAre(2)) << "the third is on another host";
}

}  // namespace
}  // namespace triptych::parallel

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  triptych::parallel::MpiSession own;
  triptych::parallel::session = &own;
  const int code = RUN_ALL_TESTS();
  own.finish();
  return code;
}
