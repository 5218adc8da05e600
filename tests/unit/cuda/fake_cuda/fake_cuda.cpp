// SPDX-License-Identifier: Apache-2.0
// NOLINTBEGIN(readability-identifier-naming): names are CUDA's
#include "tests/unit/cuda/fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda/device/launch.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/library/libraries.h"

using Work = std::function<void()>;

struct FakeGraph {
  std::vector<Work> work;
};
struct FakeStream {
  std::deque<Work> work;
  std::unique_ptr<FakeGraph> recording;

  void add(Work item) {
    if (recording) return recording->work.push_back(std::move(item));
    work.push_back(std::move(item));
  }
  void run() {
    for (; !work.empty(); work.pop_front()) work.front()();
  }
};
struct FakeEvent {
  FakeStream* stream = nullptr;
};

namespace {

FakeStream legacy;
cudaError_t last_error = cudaSuccess;
int device = -1, graph_count = 0, replay_count = 0;

template <class T>
cudaError_t make(T** pointer) {
  *pointer = std::make_unique<T>().release();
  return cudaSuccess;
}
template <class T>
cudaError_t destroy(T* pointer) {
  std::unique_ptr<T>(pointer).reset();
  return cudaSuccess;
}
cudaError_t allocate(void** pointer, std::size_t bytes) {
  *pointer = std::malloc(bytes);       // NOLINT(cppcoreguidelines-no-malloc)
  std::memset(*pointer, 0xFF, bytes);  // previous content
  return cudaSuccess;
}
cudaError_t deallocate(void* pointer) {
  std::free(pointer);  // NOLINT(cppcoreguidelines-no-malloc)
  return cudaSuccess;
}

}  // namespace

namespace fake_cuda {

void launch(cudaStream_t stream, Work work) { stream->add(std::move(work)); }
void leave_error() { last_error = cudaErrorInvalidValue; }
int current_device() { return device; }
int graphs() { return graph_count; }
int replays() { return replay_count; }

}  // namespace fake_cuda

const char* cudaGetErrorString(cudaError_t) { return "an error of the fake GPU"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 2;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  device = index;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return allocate(pointer, bytes); }
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return allocate(pointer, bytes); }
cudaError_t cudaFree(void* pointer) {
  legacy.run();
  return deallocate(pointer);
}
cudaError_t cudaFreeHost(void* pointer) { return deallocate(pointer); }
cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  return cudaMemsetAsync(target, value, bytes, &legacy);
}
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  stream->add([=] { std::memset(target, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  stream->add([=] { std::memcpy(target, source, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroy(stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->run();
  legacy.run();
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->recording = std::make_unique<FakeGraph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  ++graph_count;
  *graph = stream->recording.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned) {
  ++graph_count;
  *executable = std::make_unique<FakeGraph>(*graph).release();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ++replay_count;
  for (const auto& work : executable->work) stream->add(work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  --graph_count;
  return destroy(graph);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return cudaGraphDestroy(executable);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy(event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->stream == nullptr ? cudaSuccess : cudaStreamSynchronize(event->stream);
}

namespace triptych::cuda {

std::vector<BackendLibrary> libraries() { return {}; }

namespace gpu {
KernelTable kernel_table(int) { return {}; }
cudaError_t probe_kernel(cudaFuncAttributes&) { return cudaSuccess; }
}  // namespace gpu

}  // namespace triptych::cuda
// NOLINTEND(readability-identifier-naming)
