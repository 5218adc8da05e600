// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/nccl_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm/gpu_memory.h"
#include "parallel/comm/nccl_calls.h"

namespace triptych::parallel {
namespace {

using Clock = std::chrono::steady_clock;

/// NCCL has begun the requested work, or will.
void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CommError(fmt::format("{}: {}", call, nccl().error_string(result)));
}

/// One call of NCCL for several communicators.
template <class Calls>
void grouped(const Calls& calls) {
  check_nccl(nccl().group_start(), "ncclGroupStart");
  try {
    calls();
  } catch (...) {
    nccl().group_end();  // the calls before are begun. The links are aborted for it
    throw;
  }
  check_nccl(nccl().group_end(), "ncclGroupEnd");
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return ncclFloat32;
    case DType::BF16:
      return ncclBfloat16;
    case DType::F16:
      return ncclFloat16;
    case DType::I8:
      return ncclInt8;
    case DType::U8:
      return ncclUint8;
    case DType::I32:
      return ncclInt32;
    case DType::I64:
      return ncclInt64;
    case DType::Bool:
      break;
  }
  throw InvalidArgument("booleans have no sum; cast them to i32 before they are reduced");
}

/// State of the stream up to the event. An error, be it "not ready", is not left behind as this
/// thread's last one, or the next launch would report it as its own.
cudaError_t state_of(cudaEvent_t event) {
  const auto status = cudaEventQuery(event);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status;
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace

NcclLinks::NcclLinks(int ranks, Seconds timeout) : gpus_(static_cast<std::size_t>(ranks)) {
  const int found = count_gpus();
  if (found < ranks) {
    throw DeviceError(
        fmt::format("{} ranks over nccl need as many GPUs, and there {} {}; ask for fewer ranks",
                    ranks, found == 1 ? "is" : "are", found));
  }
  for (int rank = 0; rank < ranks; ++rank) open(rank);
  try {
    connect(timeout);
  } catch (...) {
    abort();
    throw;
  }
}

NcclLinks::Gpu::~Gpu() {
  if (arrival != nullptr) cudaEventDestroy(arrival);
  if (stream != nullptr) cudaStreamDestroy(stream);
}

void NcclLinks::open(int rank) {
  auto& own = gpu(rank);
  own.memory = open_gpu_memory(rank);  // makes it the current device
  check_cuda(cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check_cuda(cudaEventCreateWithFlags(&own.arrival, cudaEventDisableTiming), "cudaEventCreate");
}

void NcclLinks::connect(Seconds timeout) {
  ncclUniqueId id;
  check_nccl(nccl().unique_id(&id), "ncclGetUniqueId");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  grouped([&] {
    for (int rank = 0; rank < static_cast<int>(gpus_.size()); ++rank) {
      use_gpu(rank);
      check_nccl(
          nccl().init_rank(&gpu(rank).comm, static_cast<int>(gpus_.size()), id, rank, &config),
          "ncclCommInitRankConfig");
    }
  });
  for (const auto start = Clock::now(); !all_ready(); pause()) {
    if (Clock::now() - start < timeout) continue;
    throw CommError(
        fmt::format("NCCL did not connect {} GPUs within {:.1f} s; NCCL_DEBUG=INFO "
                    "in the environment makes it say why",
                    gpus_.size(), timeout.count()));
  }
}

// Nothing is under way any more that somebody waits for.
NcclLinks::~NcclLinks() { abort(); }

MessageMemory& NcclLinks::memory(int rank) { return *gpu(rank).memory; }

void NcclLinks::require_alive() const {
  if (aborted_) throw CommError("its communicators were aborted");
}

bool NcclLinks::ready(int rank) {
  ncclResult_t state = ncclSuccess;
  check_nccl(nccl().async_error(gpu(rank).comm, &state), "ncclCommGetAsyncError");
  check_nccl(state, "NCCL");
  return state == ncclSuccess;
}

bool NcclLinks::all_ready() {
  bool all = true;
  for (int rank = 0; rank < static_cast<int>(gpus_.size()); ++rank) all = ready(rank) && all;
  return all;
}

bool NcclLinks::try_move(int from, int to, std::span<std::byte> target,
                         std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  require_alive();
  if (!ready(from) || !ready(to)) return false;
  auto& own = gpu(to);
  if (source.empty()) return true;
  mark(from);
  grouped([&] {
    check_nccl(
        nccl().send(source.data(), source.size(), ncclInt8, to, gpu(from).comm, gpu(from).stream),
        "ncclSend");
    check_nccl(nccl().receive(target.data(), target.size(), ncclInt8, from, own.comm, own.stream),
               "ncclRecv");
  });
  begin(own, from);
  return true;
}

bool NcclLinks::try_all_reduce(std::span<const std::span<std::byte>> buffers, DType dtype) {
  const std::lock_guard lock(mutex_);
  require_alive();
  const auto type = type_of(dtype);
  if (!all_ready()) return false;
  grouped([&] {
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      auto* data = buffers[rank].data();
      check_nccl(nccl().all_reduce(data, data, buffers[rank].size() / dtype_size(dtype), type,
                                   ncclSum, gpus_[rank].comm, gpus_[rank].stream),
                 "ncclAllReduce");
    }
  });
  for (auto& own : gpus_) begin(own, -1);
  return true;
}

void NcclLinks::begin(Gpu& receiver, int sender) {
  receiver.under_way = true;
  receiver.marked = false;
  receiver.sender = sender;
  receiver.number = ++begun_;
}

void NcclLinks::mark(int rank) {
  auto& own = gpu(rank);
  if (!own.under_way || own.marked) return;
  check_cuda(cudaEventRecord(own.arrival, own.stream), "cudaEventRecord");
  own.marked = true;
}

std::optional<RankPair> NcclLinks::oldest_under_way() {
  const std::lock_guard lock(mutex_);
  std::optional<RankPair> oldest;
  auto first = begun_ + 1;
  for (int rank = 0; rank < static_cast<int>(gpus_.size()); ++rank) {
    const auto& own = gpu(rank);
    if (!own.under_way || own.sender < 0 || own.number > first) continue;
    if (own.marked && state_of(own.arrival) == cudaSuccess) continue;
    oldest = {own.sender, rank};
    first = own.number;
  }
  return oldest;
}

bool NcclLinks::arrived(int rank) {
  const std::lock_guard lock(mutex_);
  require_alive();
  auto& own = gpu(rank);
  if (!own.under_way) return true;
  const bool idle = all_ready();  // or one of them tells of an error
  if (!own.marked && !idle && !ready(rank)) return false;
  mark(rank);
  const auto status = state_of(own.arrival);
  if (status == cudaErrorNotReady) return false;
  if (status != cudaSuccess) throw CommError(cudaGetErrorString(status));
  own.under_way = false;
  return true;
}

void NcclLinks::abort() {
  const std::lock_guard lock(mutex_);
  if (!aborted_) abort_locked();
  aborted_ = true;
}

void NcclLinks::abort_locked() {
  nccl().group_start();
  for (auto& own : gpus_)
    if (own.comm != nullptr) nccl().abort(own.comm);
  nccl().group_end();
}

}  // namespace triptych::parallel
