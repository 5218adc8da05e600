// The server and its workers on numbers instead of models. Runs of models are in tests/cli.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/asynchronous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm/thread_group.h"

namespace triptych::parallel {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// End of a model of one number: each contribution is 0.1 * (rank - model).
struct AsynchronousRun {
  StretchRecord record;
  float model = 1;
  std::vector<float> losses;
  std::int64_t most_ahead = 0;  ///< steps of a worker that began before the slowest's last
};

struct Case {
  int workers = 3;
  Stretch stretch = {.steps = 24, .period = 1, .bound = 2, .contributed = 1, .returned = 1};
  std::vector<int> replay = {};
  int slow = 0;  ///< that worker pauses in every step
  std::int64_t interrupt_at = 1000;
};

AsynchronousRun run(const Case& own) {
  AsynchronousRun outcome;
  std::vector<std::atomic<std::int64_t>> finished(static_cast<std::size_t>(own.workers));
  std::atomic<std::int64_t> most_ahead = 0, steps = 0;
  run_ranks(own.workers + 1, {}, [&](Communicator& communicator) {
    if (communicator.rank() == 0) {
      outcome.record =
          serve(communicator, own.stretch,
                {.apply = [&](std::int64_t,
                              std::span<const float> values) { outcome.model += values[0]; },
                 .read = [&](std::span<float> reply) { reply[0] = outcome.model; },
                 .on_loss =
                     [&](std::int64_t step, float loss) {
                       EXPECT_EQ(step, std::ssize(outcome.losses));
                       outcome.losses.push_back(loss);
                     },
                 .interrupted = [&] { return steps > own.interrupt_at; },
                 .replay = own.replay});
      return;
    }
    const auto rank = static_cast<float>(communicator.rank());
    float model = 1;
    auto& done = finished[static_cast<std::size_t>(communicator.rank() - 1)];
    work(communicator, own.stretch,
         {.step =
              [&](std::int64_t step) {
                EXPECT_EQ(step, done);
                std::int64_t slowest = step;
                for (const auto& other : finished) slowest = std::min(slowest, other.load());
                if (step - slowest > most_ahead) most_ahead = step - slowest;
                if (communicator.rank() == own.slow)
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                ++steps;
                ++done;
                return rank;
              },
          .contribute = [&](std::span<float> values) { values[0] = 0.1F * (rank - model); },
          .take = [&](std::span<const float> reply) { model = reply[0]; }});
  });
  outcome.most_ahead = most_ahead;
  for (const auto& steps_done : finished)
    EXPECT_EQ(steps_done.load(), outcome.record.steps) << "all end together";
  return outcome;
}

TEST(Asynchronous, every_step_contributes_once) {
  for (const std::int64_t period : {1, 5}) {
    Case own;
    own.stretch.period = period;
    const auto outcome = run(own);
    EXPECT_EQ(outcome.record.steps, 24);
    EXPECT_EQ(std::ssize(outcome.record.order), 3 * ((24 + period - 1) / period));
    for (const int rank : {1, 2, 3})
      EXPECT_EQ(std::ranges::count(outcome.record.order, rank), (24 + period - 1) / period);
    EXPECT_EQ(outcome.losses, std::vector<float>(24, 2)) << "the mean of 1, 2 and 3";
  }
}

TEST(Asynchronous, nobody_is_further_ahead_than_the_bound) {
  Case own;
  own.slow = 2;
  for (const std::int64_t bound : {0, 1, 4}) {
    own.stretch.bound = bound;
    const auto outcome = run(own);
    EXPECT_LE(outcome.most_ahead, bound + 1);  // the slowest may be within its step
    EXPECT_GE(outcome.most_ahead, bound) << "others do not wait without need";
    // Each of two others may come from as far behind to as far ahead.
    EXPECT_LE(outcome.record.most_staleness, 2 * (2 * bound + 2));
  }
}

TEST(Asynchronous, a_record_is_played_again_to_the_same_bits) {
  Case own;
  own.slow = 3;
  const auto first = run(own);
  own.replay = first.record.order;
  own.slow = 1;
  const auto again = run(own);
  EXPECT_EQ(again.record.order, first.record.order);
  EXPECT_EQ(again.model, first.model);
  EXPECT_EQ(again.record.staleness, first.record.staleness);
}

TEST(Asynchronous, a_record_of_another_run_is_refused) {
  Case own;
  own.replay = {1, 1, 1, 1, 1, 1, 1};
  own.stretch.bound = 1;
  EXPECT_THAT([&] { run(own); }, ThrowsMessage<InvalidArgument>(
                                     HasSubstr("contribution 3 of the replay is rank 1's")));
}

TEST(Asynchronous, an_interrupted_stretch_ends_for_all_together) {
  Case own;
  own.stretch.steps = 1000000;
  own.interrupt_at = 30;
  const auto outcome = run(own);
  EXPECT_LT(outcome.record.steps, 30);
  EXPECT_EQ(std::ssize(outcome.losses), outcome.record.steps);
}

TEST(Asynchronous, a_worker_that_fails_is_named) {
  const auto fail = [](bool silently) {
    run_ranks(3, {.timeout = Seconds(2)}, [&](Communicator& communicator) {
      const Stretch stretch = {.steps = 10, .contributed = 1, .returned = 1};
      if (communicator.rank() == 0) {
        serve(communicator, stretch,
              {.apply = [](std::int64_t, std::span<const float>) {},
               .read = [](std::span<float>) {},
               .on_loss = [](std::int64_t, float) {},
               .interrupted = [] { return false; }});
        return;
      }
      if (silently && communicator.rank() == 2) return;
      work(communicator, stretch,
           {.step = [&](std::int64_t step) -> float {
              if (communicator.rank() == 2 && step == 3) throw NumericError("no number");
              return 0;
            },
            .contribute = [](std::span<float>) {},
            .take = [](std::span<const float>) {}});
    });
  };
  EXPECT_THAT([&] { fail(false); }, ThrowsMessage<Error>(HasSubstr("no number")));
  EXPECT_THAT([&] { fail(true); },
              ThrowsMessage<FaultError>(HasSubstr("rank 2 ended in the message \"contribution\"")));
}

}  // namespace
}  // namespace triptych::parallel
