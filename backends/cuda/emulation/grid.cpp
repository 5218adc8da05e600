// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/grid.h"

#include <fmt/core.h>
#include <tbb/task_arena.h>

#include "backends/cuda/emulation/global_shadow.h"
#include "backends/cuda/emulation/occupancy.h"
#include "backends/cuda/emulation/recorder.h"
#include "backends/cuda/emulation/request_watcher.h"
#include "backends/cuda/emulation/resident_blocks.h"
#include "backends/host/parallel.h"

namespace triptych::cuda::emulation {
namespace {

/// Threads that are worth a task of their own.
constexpr std::int64_t kTaskThreads = 2048;

void check_shape(const char* kernel, const LaunchShape& shape) {
  const auto &grid = shape.grid, &block = shape.block;
  const auto shared_bytes = shape.shared_bytes;
  const bool too_far = grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535 || block.z > 64;
  if (too_far || grid.count() == 0 || block.count() == 0 || block.count() > kMaxThreads ||
      shared_bytes > kMaxSharedBytes) {
    throw InvalidArgument(fmt::format(
        "{}: a launch of {} x {} x {} blocks of {} x {} x {} threads with {} bytes of "
        "shared memory is beyond what a GPU takes: 1 to {} threads in a block, 64 of them "
        "along z; 65,535 blocks along y and z; {} bytes",
        kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, kMaxThreads,
        kMaxSharedBytes));
  }
}

}  // namespace

EmulatedStream::Worker::Worker() = default;
EmulatedStream::Worker::~Worker() = default;

EmulatedStream::EmulatedStream(Mode mode, bool counts)
    : mode_(mode), counts_(counts), global_(std::make_unique<GlobalShadow>()) {}
EmulatedStream::~EmulatedStream() = default;

SkippedThreads EmulatedStream::skipped() const {
  SkippedThreads all;
  for (const auto& worker : workers_) {
    const auto& skipped = worker.block.skipped();
    if (all.barriers == 0)
      all = skipped;
    else
      all.barriers += skipped.barriers;
  }
  return all;
}

std::vector<Remark> EmulatedStream::undefined_reads() const {
  std::vector<Remark> all;
  for (const auto& worker : workers_) {
    for (const auto& each : worker.block.undefined_reads()) add(all, each);
  }
  return all;
}

std::vector<Remark> EmulatedStream::equal_stores() const {
  std::vector<Remark> all;
  for (const auto& worker : workers_) {
    for (const auto& each : worker.block.equal_stores()) add(all, each);
  }
  return all;
}

NotedFaults EmulatedStream::noted_faults() const {
  NotedFaults all;
  for (const auto& worker : workers_) all.add(worker.block.noted_faults());
  return all;
}

void EmulatedStream::run_block(Worker& worker, const char* kernel, const LaunchShape& shape,
                               FunctionRef<void()> body, std::uint64_t number) {
  const auto& grid = shape.grid;
  const bool is_observed = watcher_ == nullptr || watcher_->observes(number);
  if (mode_ != Mode::Plain && is_observed && !worker.recorder) {
    worker.recorder =
        std::make_unique<Recorder>(mode_ == Mode::Checked ? global_.get() : nullptr, counts_);
  }
  if (worker.recorder) worker.recorder->tell(watcher_);
  worker.block.follow(schedule_);
  const Dim3 index = {static_cast<unsigned>(number % grid.x),
                      static_cast<unsigned>(number / grid.x % grid.y),
                      static_cast<unsigned>(number / grid.x / grid.y)};
  if (!is_observed) current_recorder = nullptr;
  worker.block.run(kernel, grid, shape.block, index, shape.shared_bytes, body,
                   is_observed ? worker.recorder.get() : nullptr);
}

void EmulatedStream::run(const char* kernel, const LaunchShape& shape, FunctionRef<void()> body,
                         const std::string& instance) {
  check_shape(kernel, shape);
  const bool checked = mode_ == Mode::Checked;
  const bool is_alone = shape.is_cooperative || tbb::this_task_arena::max_concurrency() == 1;
  if (checked) global_->begin_launch(is_alone);
  const auto& grid = shape.grid;
  const auto threads = static_cast<std::int64_t>(shape.block.count());
  if (shape.is_cooperative) {
    ResidentBlocks resident(grid.count(), [&] {
      if (checked) global_->begin_launch(is_alone);
    });
    resident.run([&](std::size_t number) {
      Worker& worker = workers_.local();
      worker.block.reside(&resident);
      run_block(worker, kernel, shape, body, number);
      worker.block.reside(nullptr);
    });
  } else {
    parallel_for(static_cast<std::int64_t>(grid.count()),
                 std::max<std::int64_t>(1, kTaskThreads / threads),
                 [&](std::int64_t begin, std::int64_t end) {
                   Worker& worker = workers_.local();
                   for (auto i = begin; i < end; ++i) {
                     run_block(worker, kernel, shape, body, static_cast<std::uint64_t>(i));
                   }
                 });
  }
  if (mode_ == Mode::Plain) return;
  auto& total = counters_[kernel];
  total += {.launches = 1,
            .block_threads = shape.block.count(),
            .shared_bytes = shape.shared_bytes,
            .occupancy =
                occupancy_of(instance, static_cast<int>(shape.block.count()), shape.shared_bytes)};
  for (auto& worker : workers_) {
    if (worker.recorder) total += worker.recorder->take();
  }
}

}  // namespace triptych::cuda::emulation
