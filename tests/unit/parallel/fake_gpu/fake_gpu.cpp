// SPDX-License-Identifier: Apache-2.0
// NOLINTBEGIN(readability-identifier-naming): names are CUDA's and NCCL's
#include "tests/unit/parallel/fake_gpu/fake_gpu.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <nccl.h>
#include "parallel/comm/gpu_sum.h"
#include "parallel/comm/nccl_calls.h"
#include "parallel/comm/sum.h"

using triptych::DType;

struct FakeEvent {
  bool done = true;
};

/// Work in a stream.
struct Work {
  enum class Kind { Mark, Clear, Send, Receive, AllReduce } kind = Kind::Mark;
  FakeEvent* event = nullptr;
  FakeComm* comm = nullptr;
  int peer = -1;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct FakeStream {
  std::deque<Work> work;
};

struct FakeComm {
  int rank = 0, ranks = 0;
  int busy = 0;  // questions until it is done with the last group
  bool failed = false, aborted = false;
  FakeStream* stream = nullptr;                       // of the last call
  std::vector<std::pair<FakeStream*, Work>> waiting;  // until it is no longer busy
};

namespace {

constexpr std::uint64_t kDeviceBit = std::uint64_t{1} << 62;  // no address has it

struct Machine {
  std::mutex mutex;
  int gpus = 0, aborted = 0, wrong = 0;
  bool connects = true;
  std::map<std::uint64_t, std::vector<std::byte>> memory;  // by device address
  std::set<FakeStream*> streams;
  FakeStream legacy;             ///< of calls without a stream. Others do not wait for it
  std::vector<FakeComm*> comms;  // by rank
  std::set<std::pair<int, int>> cut;
};

Machine& machine() {
  static Machine one;
  return one;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int group_depth = 0;
thread_local std::vector<std::pair<FakeStream*, Work>> group;

/// Result of a call. Unless it went well, cudaGetLastError returns it too.
cudaError_t told(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

bool is_device(const void* pointer) {
  return (reinterpret_cast<std::uint64_t>(pointer) & kDeviceBit) != 0;
}

/// Host address of memory that may be a GPU's. nullptr when it is a GPU's and was not allocated.
std::byte* host_address(const void* pointer, std::size_t bytes) {
  if (!is_device(pointer)) return static_cast<std::byte*>(const_cast<void*>(pointer));
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  auto& memory = machine().memory;
  auto block = memory.upper_bound(address);
  if (block == memory.begin()) return nullptr;
  --block;
  const auto offset = address - block->first;
  if (offset + bytes > block->second.size()) return nullptr;
  return block->second.data() + offset;
}

bool run_message(const Work& receive) {
  auto& all = machine();
  auto* from = all.comms[static_cast<std::size_t>(receive.peer)];
  if (from == nullptr || from->stream == nullptr || from->stream->work.empty()) return false;
  auto& head = from->stream->work.front();
  const bool match = head.kind == Work::Kind::Send && head.peer == receive.comm->rank;
  if (!match || all.cut.contains({receive.peer, receive.comm->rank})) return false;
  auto* target = host_address(receive.data, receive.bytes);
  const auto* source = host_address(head.data, head.bytes);
  if (target == nullptr || source == nullptr || head.bytes != receive.bytes) {
    ++all.wrong;
  } else {
    std::memcpy(target, source, receive.bytes);
  }
  from->stream->work.pop_front();
  return true;
}

bool run_all_reduce() {
  auto& all = machine();
  std::vector<std::byte*> buffers;
  std::size_t bytes = 0;
  for (auto* comm : all.comms) {
    if (comm == nullptr || comm->stream == nullptr || comm->stream->work.empty()) return false;
    const auto& head = comm->stream->work.front();
    if (head.kind != Work::Kind::AllReduce) return false;
    bytes = head.bytes;
    buffers.push_back(host_address(head.data, head.bytes));
  }
  triptych::parallel::sum_everywhere(buffers, 0, bytes / sizeof(float), DType::F32);
  for (auto* comm : all.comms) comm->stream->work.pop_front();
  return true;
}

void clear(const Work& work) {
  auto* to = host_address(work.data, work.bytes);
  if (to != nullptr) std::memset(to, 0, work.bytes);  // otherwise the memory was freed
}

bool run_head(FakeStream& stream) {
  if (stream.work.empty()) return false;
  const Work head = stream.work.front();
  if (head.kind == Work::Kind::Send) return false;  // the receiver does it
  if (head.kind == Work::Kind::AllReduce) return run_all_reduce();
  if (head.kind == Work::Kind::Receive && !run_message(head)) return false;
  if (head.kind == Work::Kind::Mark) head.event->done = true;
  if (head.kind == Work::Kind::Clear) clear(head);
  stream.work.pop_front();
  return true;
}

void progress() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto* stream : machine().streams) moved = run_head(*stream) || moved;
  }
}

/// As far as the stream comes by itself: it executes the next request at once.
void catch_up(FakeStream* stream) {
  while (run_head(*stream)) {
  }
}

ncclResult_t enqueue(FakeStream* stream, const Work& work) {
  group.emplace_back(stream, work);
  if (group_depth > 0) return ncclSuccess;
  ncclGroupStart();
  return ncclGroupEnd();
}

}  // namespace

namespace fake_gpu {

void reset(int gpus) {
  auto& all = machine();
  const std::lock_guard lock(all.mutex);
  all.gpus = gpus;
  all.aborted = all.wrong = 0;
  all.connects = true;
  all.comms.clear();
  all.cut.clear();
}

void cut_link(int from, int to) {
  const std::lock_guard lock(machine().mutex);
  machine().cut.insert({from, to});
}

void fail_communicator(int rank) {
  const std::lock_guard lock(machine().mutex);
  machine().comms[static_cast<std::size_t>(rank)]->failed = true;
}

void never_connect() {
  const std::lock_guard lock(machine().mutex);
  machine().connects = false;
}

std::size_t live_allocations() {
  const std::lock_guard lock(machine().mutex);
  return machine().memory.size();
}

int aborted_communicators() {
  const std::lock_guard lock(machine().mutex);
  return machine().aborted;
}

int wrong_calls() {
  const std::lock_guard lock(machine().mutex);
  return machine().wrong;
}

}  // namespace fake_gpu

const char* cudaGetErrorString(cudaError_t) { return "an error of the fake GPU"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard lock(machine().mutex);
  *count = machine().gpus;
  return told(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const std::lock_guard lock(machine().mutex);
  std::vector<std::byte> block(bytes, std::byte{0xFF});  // previous content
  const auto address = reinterpret_cast<std::uint64_t>(block.data()) | kDeviceBit;
  *pointer = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  machine().memory.emplace(address, std::move(block));
  return cudaSuccess;
}

// As on a GPU, both return before the memory is set: a clear comes late.
cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  return cudaMemsetAsync(target, value, bytes, &machine().legacy);
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (value != 0 || host_address(target, bytes) == nullptr) return told(cudaErrorInvalidValue);
  stream->work.push_back(
      {.kind = Work::Kind::Clear, .data = static_cast<std::byte*>(target), .bytes = bytes});
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  const std::lock_guard lock(machine().mutex);
  progress();
  catch_up(&machine().legacy);
  machine().memory.erase(reinterpret_cast<std::uint64_t>(pointer));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  catch_up(stream);
  auto* to = host_address(target, bytes);
  const auto* from = host_address(source, bytes);
  if (to == nullptr || from == nullptr) return told(cudaErrorInvalidValue);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(machine().mutex);
  *stream = std::make_unique<FakeStream>().release();
  machine().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  machine().streams.erase(stream);
  std::unique_ptr<FakeStream>(stream).reset();
  return cudaSuccess;
}

/// Copies are done already. The legacy stream comes no earlier than it must: after this one.
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  catch_up(stream);
  catch_up(&machine().legacy);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = std::make_unique<FakeEvent>().release();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::unique_ptr<FakeEvent>(event).reset();
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  event->done = false;
  stream->work.push_back({.kind = Work::Kind::Mark, .event = event});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(machine().mutex);
  progress();
  return told(event->done ? cudaSuccess : cudaErrorNotReady);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "invalid usage";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(machine().mutex);
  if (config->blocking != 0) return ncclInvalidUsage;
  auto own = std::make_unique<FakeComm>();
  own->rank = rank;
  own->ranks = ranks;
  own->busy = machine().connects ? 2 : 1 << 30;
  machine().comms.resize(static_cast<std::size_t>(ranks));
  *comm = machine().comms[static_cast<std::size_t>(rank)] = own.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard lock(machine().mutex);
  *error = comm->failed ? ncclRemoteError : comm->busy > 0 ? ncclInProgress : ncclSuccess;
  if (comm->busy > 0 && --comm->busy == 0) {
    for (auto& [stream, work] : comm->waiting) stream->work.push_back(work);
    comm->waiting.clear();
  }
  progress();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(machine().mutex);
  ++machine().aborted;
  if (comm->stream != nullptr) {
    std::erase_if(comm->stream->work, [&](const Work& work) { return work.comm == comm; });
  }
  machine().comms[static_cast<std::size_t>(comm->rank)] = nullptr;
  std::unique_ptr<FakeComm>(comm).reset();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  const std::lock_guard lock(machine().mutex);
  auto calls = std::exchange(group, {});
  for (auto& [stream, work] : calls) {
    if (work.comm->busy == 0 && is_device(work.data)) continue;
    ++machine().wrong;
    return ncclInvalidUsage;
  }
  for (auto& [stream, work] : calls) {
    work.comm->busy = 3;
    work.comm->stream = stream;
    work.comm->waiting.emplace_back(stream, work);
  }
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* source, std::size_t count, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  auto* data = static_cast<std::byte*>(const_cast<void*>(source));
  return enqueue(
      stream, {.kind = Work::Kind::Send, .comm = comm, .peer = peer, .data = data, .bytes = count});
}

ncclResult_t ncclRecv(void* target, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  auto* data = static_cast<std::byte*>(target);
  return enqueue(
      stream,
      {.kind = Work::Kind::Receive, .comm = comm, .peer = peer, .data = data, .bytes = count});
}

ncclResult_t ncclAllReduce(const void*, void* target, std::size_t count, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  auto* data = static_cast<std::byte*>(target);
  return enqueue(
      stream,
      {.kind = Work::Kind::AllReduce, .comm = comm, .data = data, .bytes = count * sizeof(float)});
}

namespace triptych::parallel {

const std::string& nccl_problem() {
  static const std::string none;
  return none;
}

const NcclCalls& nccl() {
  static const NcclCalls calls{
      .error_string = ncclGetErrorString,
      .unique_id = ncclGetUniqueId,
      .init_rank = ncclCommInitRankConfig,
      .async_error = ncclCommGetAsyncError,
      .abort = ncclCommAbort,
      .group_start = ncclGroupStart,
      .group_end = ncclGroupEnd,
      .send = ncclSend,
      .receive = ncclRecv,
      .all_reduce = ncclAllReduce,
  };
  return calls;
}

cudaError_t gpu_add(std::byte* target, const std::byte* source, std::size_t elements, DType dtype,
                    cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  catch_up(stream);
  const auto bytes = elements * dtype_size(dtype);
  auto* to = host_address(target, bytes);
  const auto* from = host_address(source, bytes);
  if (!is_device(target) || to == nullptr || from == nullptr) return told(cudaErrorInvalidValue);
  add_to({to, bytes}, {from, bytes}, dtype);
  return cudaGetLastError();  // may be that of a call before
}

cudaError_t gpu_scale(std::byte* target, std::size_t elements, float factor, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  catch_up(stream);
  auto* to = reinterpret_cast<float*>(host_address(target, elements * sizeof(float)));
  if (!is_device(target) || to == nullptr) return told(cudaErrorInvalidValue);
  for (std::size_t i = 0; i < elements; ++i) to[i] *= factor;
  return cudaGetLastError();
}

}  // namespace triptych::parallel
// NOLINTEND(readability-identifier-naming)
