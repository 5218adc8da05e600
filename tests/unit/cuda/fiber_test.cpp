// Fibers, as many and as deep as a block of threads has them. Above all under the sanitizers, which
// need to know of every switch.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/fiber.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kFibers = 1024;  // threads of the largest block
constexpr std::size_t kStackBytes = 256 * 1024;

/// Fibers in a ring. Each of them hands over to the next from some calls down its stack.
class Ring {
 public:
  explicit Ring(int rounds) : rounds_(rounds) {
    for (std::size_t i = 0; i < kFibers; ++i) {
      const auto entry = [](void* ring) { static_cast<Ring*>(ring)->work(); };
      fibers_.push_back(std::make_unique<Fiber>(kStackBytes, entry, this));
    }
  }

  /// Comes back when the last fiber has been reached so many times. All of them stand somewhere in
  /// the middle of their work then, and end with the ring.
  void run() { fibers_[0]->resume(home_); }

  int visits(std::size_t fiber) const { return visits_[fiber]; }

 private:
  [[noreturn]] void work() {
    for (;;) descend(8);
  }

  /// Keeps an array at each depth, to be found as it was left.
  void descend(int depth) {
    std::array<int, 32> local;
    local.fill(depth);
    if (depth > 0) {
      descend(depth - 1);
    } else {
      hand_over();
    }
    for (const int value : local) EXPECT_EQ(value, depth);
  }

  void hand_over() {
    const auto self = running_;
    ++visits_[self];
    if (self + 1 == kFibers && visits_[self] == rounds_) {
      home_.resume(*fibers_[self]);
    } else {
      running_ = (self + 1) % kFibers;
      fibers_[running_]->resume(*fibers_[self]);
    }
  }

  int rounds_;
  Fiber home_;
  std::size_t running_ = 0;
  std::array<int, kFibers> visits_{};
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

TEST(Fiber, a_stack_is_used_again_unless_its_end_was_reached) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need a new stack for each fiber";
#endif
  const auto place = [](bool reaches_end) {
    Fiber fiber(
        kStackBytes, [](void*) {}, nullptr);
    EXPECT_EQ(fiber.stack()[0], std::byte{0});
    if (reaches_end) const_cast<std::byte&>(fiber.stack()[0]) = std::byte{1};
    return fiber.stack().data();
  };
  const auto* first = place(false);
  EXPECT_EQ(place(true), first);
  place(false);
}

TEST(Fiber, keeps_its_stack_while_others_run) {
  Ring ring(5);
  ring.run();
  for (std::size_t i = 0; i < kFibers; ++i) EXPECT_EQ(ring.visits(i), 5);
}

TEST(Fiber, may_be_left_for_ever_and_its_memory_used_again) {
  for (int i = 0; i < 20; ++i) Ring(1).run();
}

TEST(Fiber, belongs_to_the_thread_that_runs_it) {
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) threads.emplace_back([] { Ring(3).run(); });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace triptych::cuda::emulation
