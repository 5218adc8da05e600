// Ranks that misbehave at random points: whatever they do, all others learn the same cause, soon.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/thread_group.h"

namespace triptych::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kDeadline(1), kStall(1.8), kGrace(0.5);
constexpr int kInjections = 200, kCollectives = 6;

enum class Injection { Throw, Leave, Slow, Stall, WrongSize, WrongOrder };

struct Scene {
  int world_size, culprit, collective;
  std::uint64_t operation;  ///< of the culprit's transport within that collective
  Injection injection;
  Algorithm algorithm;
  std::int64_t elements;
};

Scene draw(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned count) { return static_cast<int>(random() % count); };
  Scene scene;
  scene.world_size = 2 + below(3);
  scene.culprit = below(static_cast<unsigned>(scene.world_size));
  scene.collective = below(kCollectives);
  scene.operation = static_cast<std::uint64_t>(below(6));
  // What costs a deadline is rare, for the test's sake.
  scene.injection = seed % 40 == 0 ? Injection::Stall : static_cast<Injection>(below(6));
  if (seed % 40 != 0 && scene.injection == Injection::Stall) scene.injection = Injection::Throw;
  scene.algorithm = static_cast<Algorithm>(below(4));
  scene.elements = 1 + below(5000);
  return scene;
}

/// Thrown by a rank that leaves without a word.
struct Left {};

/// Misbehaves before one operation.
class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const Scene& scene)
      : inner_(std::move(inner)), scene_(scene) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  std::string_view name() const override { return inner_->name(); }
  std::uint64_t send(int to, const Envelope& envelope, std::span<const std::byte> bytes) override {
    before(envelope);
    return inner_->send(to, envelope, bytes);
  }
  void wait_taken(int to, std::uint64_t message) override { inner_->wait_taken(to, message); }
  void receive(int from, const Envelope& envelope, std::span<std::byte> target) override {
    before(envelope);
    inner_->receive(from, envelope, target);
  }
  void receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                   DType dtype) override {
    before(envelope);
    inner_->receive_add(from, envelope, target, dtype);
  }
  Fault raise(const Fault& fault) override { return inner_->raise(fault); }
  void abandon() override { inner_->abandon(); }

  bool injected() const { return injected_; }

 private:
  void before(const Envelope& envelope) {
    const auto collective = static_cast<std::uint64_t>(scene_.collective) + 1;
    if (rank() != scene_.culprit || envelope.sequence != collective || injected_) return;
    if (operation_++ != scene_.operation) return;
    injected_ = true;
    if (scene_.injection == Injection::Throw) throw IoError("injected");
    if (scene_.injection == Injection::Leave) throw Left();
    if (scene_.injection == Injection::Slow) std::this_thread::sleep_for(kDeadline / 10);
    if (scene_.injection == Injection::Stall) std::this_thread::sleep_for(kStall);
  }

  std::unique_ptr<Transport> inner_;
  Scene scene_;
  std::uint64_t operation_ = 0;
  bool injected_ = false;
};

/// What became of a rank.
struct Outcome {
  std::optional<Fault> fault;
  Clock::time_point end;
  bool injected = false;
};

void call(Communicator& communicator, const Scene& scene, int number) {
  const bool mine = communicator.rank() == scene.culprit && number == scene.collective;
  if (mine && scene.injection == Injection::WrongOrder) communicator.barrier();
  const bool longer = mine && scene.injection == Injection::WrongSize;
  std::vector<float> data(static_cast<std::size_t>(scene.elements + (longer ? 1 : 0)), 1);
  communicator.all_reduce(data, scene.algorithm);
}

Outcome play_rank(ThreadGroup& group, int rank, const Scene& scene) {
  Outcome outcome;
  auto transport = std::make_unique<FaultyTransport>(group.transport(rank), scene);
  const auto& faulty = *transport;
  Communicator communicator(std::move(transport));
  try {
    for (int i = 0; i < kCollectives; ++i) call(communicator, scene, i);
    communicator.barrier();  // a rank may be done with the last one before another goes wrong
  } catch (const FaultError& error) {
    outcome.fault = error.fault();
  } catch (const Error& error) {
    communicator.fail(error.what());
  } catch (const Left&) {
  }
  outcome.injected = faulty.injected();
  outcome.end = Clock::now();
  return outcome;
}

std::vector<Outcome> play(const Scene& scene) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(scene.world_size));
  ThreadGroup group(scene.world_size, kDeadline);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < scene.world_size; ++rank) {
    threads.emplace_back(
        [&, rank] { outcomes[static_cast<std::size_t>(rank)] = play_rank(group, rank, scene); });
  }
  threads.clear();
  return outcomes;
}

void judge(const Scene& scene, const std::vector<Outcome>& outcomes, Seconds longest) {
  const bool wrong =
      scene.injection == Injection::WrongOrder || scene.injection == Injection::WrongSize;
  const auto& culprit = outcomes[static_cast<std::size_t>(scene.culprit)];
  const bool harmless = (!wrong && !culprit.injected) || scene.injection == Injection::Slow;
  const Fault* first = nullptr;
  for (int rank = 0; rank < scene.world_size; ++rank) {
    const auto& fault = outcomes[static_cast<std::size_t>(rank)].fault;
    if (harmless) {
      EXPECT_FALSE(fault) << to_string(*fault);
      continue;
    }
    if (rank == scene.culprit && !fault) continue;
    ASSERT_TRUE(fault) << "rank " << rank << " noticed nothing";
    if (first == nullptr) first = &*fault;
    EXPECT_EQ(to_string(*fault), to_string(*first)) << "one fault for all";
    if (wrong) {
      EXPECT_TRUE(fault->culprit == scene.culprit || fault->noticed_by == scene.culprit)
          << to_string(*fault);
    } else {
      EXPECT_EQ(fault->culprit, scene.culprit) << to_string(*fault);
    }
  }
  const Seconds allowed = scene.injection == Injection::Stall ? kStall : kDeadline;
  EXPECT_LT(longest, allowed + kGrace);
}

TEST(Injection, every_rank_learns_the_same_cause_in_time) {
  for (unsigned seed = 0; seed < kInjections; ++seed) {
    const Scene scene = draw(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << scene.world_size << " ranks, "
                                    << to_string(scene.algorithm) << ", rank " << scene.culprit
                                    << " does " << static_cast<int>(scene.injection));
    const auto start = Clock::now();
    const auto outcomes = play(scene);
    judge(scene, outcomes, Clock::now() - start);
  }
}

}  // namespace
}  // namespace triptych::parallel
