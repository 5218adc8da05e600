// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/launch.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "backends/cuda/emulation/cost_model.h"
#include "backends/cuda/emulation/occupancy.h"
#include "backends/cuda/emulation/thread_order.h"
#include "backends/cuda/plain/signals.h"
#include "backends/host/thread_team.h"

namespace triptych::cuda::plain {
namespace {

/// Steps after which a thread lets the others of its block go on.
constexpr std::uint64_t kTurn = 1024;

/// Addresses of arrays: each in its own piece of the address space, larger than a 32-bit index of
/// 16-byte elements can span.
constexpr std::uintptr_t kFirstPlace = std::uintptr_t{0x2000} << 32,
                         kDistance = std::uintptr_t{1} << 38;
constexpr std::uintptr_t kPlaces = 64;

/// A limit on the time of a thread without a count of steps: more than a processor needs for them.
std::chrono::microseconds time_of(std::uint64_t most_steps) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  return std::chrono::microseconds(std::min(most_steps, most));
}

std::size_t whole_pages(std::size_t bytes) { return (bytes / 4096 + 1) * 4096; }

/// The most warps that threads and shared memory allow, and registers on the launch's GPU.
std::map<std::string, Occupancy> occupancies(const Launch& launch, std::size_t shared_bytes) {
  const auto threads = static_cast<int>(launch.shape.block.count());
  std::map<std::string, Occupancy> result;
  for (const auto& on : emulation::multiprocessors()) {
    const bool is_its = launch.gpu != nullptr && launch.gpu->capability == on.capability;
    result[std::string(on.capability)] =
        emulation::occupancy(on, {threads, is_its ? launch.registers : 0, shared_bytes});
  }
  return result;
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : size_(bytes), mapped_(whole_pages(bytes)) {
  static std::atomic<std::uintptr_t> next{0};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a place that is wished for
  auto* hint = reinterpret_cast<void*>(kFirstPlace + next++ % kPlaces * kDistance);
  void* memory = mmap(hint, mapped_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(other.size_), mapped_(other.mapped_) {}

namespace {

/// Adds the instructions and branches in the pieces of code that warps ran.
void add_pieces(const KernelLibrary& library, const emulation::CostModel& model,
                emulation::KernelCosts& costs) {
  for (const auto& [pc, at] : model.pieces()) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pc);
    const auto piece = std::ranges::lower_bound(library.pieces(), begin, {}, &Piece::begin);
    if (piece == library.pieces().end() || piece->begin != begin) continue;
    for (std::size_t kind = 0; kind < std::size(piece->arithmetic); ++kind) {
      if (piece->arithmetic[kind] == 0) continue;
      auto& issued = costs.arithmetic[static_cast<emulation::Arithmetic>(kind)];
      issued.warps += at.warps * piece->arithmetic[kind];
      issued.lanes += at.lanes * piece->arithmetic[kind];
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the library
    const auto* behind = reinterpret_cast<const void*>(piece->branch + 1);
    // A condition may call functions of headers.
    if (piece->branch == 0 || !(library.is_own(pc) || library.is_own(behind))) continue;
    const auto where = library.place(behind);
    auto& branch =
        costs.branches[{emulation::file_of(where), where.line(), where.column(), where.part()}];
    branch.warps += at.warps;
    branch.divergent += at.parted;
  }
}

/// Blocks of the launch in its sample.
std::uint64_t observed_blocks(const Launch& launch) {
  const auto up_to = [&](std::uint64_t blocks) {
    return (blocks + launch.sample - 1) / launch.sample;
  };
  return up_to(launch.earlier_blocks + launch.shape.grid.count()) - up_to(launch.earlier_blocks);
}

/// Watches a launch without a block of the sample.
class NoSample : public emulation::RequestWatcher {
 public:
  bool observes(std::uint64_t) const override { return false; }
  void asked(const emulation::RequestPlace&, const emulation::Request&) override {}
};

/// Arrays of a launch. Where blocks write unseen, all of them count as written.
std::vector<DeviceArray> arrays_of(const Launch& launch) {
  auto arrays = launch.arrays;
  if (observed_blocks(launch) == launch.shape.grid.count()) return arrays;
  for (auto& each : arrays) {
    if (auto* content = std::exchange(each.content, nullptr)) content->write_all();
    each.is_undefined = false;
  }
  if (launch.heap != nullptr) launch.heap->write_all();
  return arrays;
}

}  // namespace

LaunchResult run(const KernelLibrary& library, const Launch& launch) {
  const auto arrays = arrays_of(launch);
  const Watch watch(library, arrays, launch.shape.shared_bytes, launch.explain, launch.textures,
                    launch.heap);
  emulation::EmulatedStream stream(emulation::Mode::Checked);
  stream.follow({.seed = launch.last_first ? emulation::kDescending : emulation::kAscending,
                 .most_steps = launch.most_steps,
                 .turn = kTurn,
                 .barriers_skip_ended = launch.barriers_skip_ended,
                 .strict = launch.strict,
                 .keeps_going = launch.noted != nullptr,
                 .keeps_subnormals = true});
  std::optional<emulation::CostModel> model;
  NoSample no_sample;
  const bool is_observed = observed_blocks(launch) > 0;
  if (launch.gpu != nullptr && is_observed) {
    const auto l1_bytes = [&](std::size_t shared_bytes) {
      const auto threads = static_cast<int>(launch.shape.block.count());
      return emulation::l1_bytes_of(*launch.gpu, {threads, launch.registers, shared_bytes},
                                    launch.shape.grid.count());
    };
    const auto shared_bytes = [&] { return watch.shared_bytes_used(); };
    model.emplace(launch.gpu->l2_bytes, shared_bytes, l1_bytes, launch.watcher);
    model->observe_every(launch.sample, launch.earlier_blocks);
  }
  stream.tell(model ? &*model : is_observed ? launch.watcher : &no_sample);
  const SignalGuard guard;
  ThreadTeam team(launch.threads);
  const auto take_noted = [&] {
    if (launch.noted != nullptr) launch.noted->add(stream.noted_faults());
  };
  try {
    team.execute([&] {
      stream.run(launch.kernel.c_str(), launch.shape, [&] {
        watch.enter();
        if (!launch.unwatched_call || emulation::current_recorder != nullptr) return launch.call();
        limit_time(time_of(launch.most_steps));
        launch.unwatched_call();
      });
    });
  } catch (const KernelFault&) {
    take_noted();
    throw;
  }
  take_noted();
  auto counters = stream.counters().at(launch.kernel);
  emulation::KernelCosts costs;
  if (model) {
    costs.sites = model->sites();
    add_pieces(library, *model, costs);
  }
  counters.shared_bytes = watch.shared_bytes_used();
  counters.occupancy = occupancies(launch, counters.shared_bytes);
  return {std::move(counters), std::move(costs), stream.skipped(), stream.equal_stores(),
          stream.undefined_reads()};
}

}  // namespace triptych::cuda::plain
