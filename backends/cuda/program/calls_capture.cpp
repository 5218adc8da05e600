// Work of streams: it runs at once, or becomes nodes of a graph while the stream is captured.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/program/calls.h"
#include "backends/cuda/program/graphs.h"

namespace triptych::cuda::program::calls {
namespace {

/// The legacy default stream, which waits for all streams that are not marked as non-blocking.
bool is_legacy(cudaStream_t stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 1; }

bool is_blocking(const Session& session, cudaStream_t stream) {
  const auto found = session.streams.find(stream);
  return found != session.streams.end() && (found->second.flags & 1U) == 0;
}

cudaError_t invalidate(Capture& capture, cudaError_t error, const char* call, Place place,
                       const std::string& what) {
  capture.is_invalid = true;
  return Session::current().mistake(
      error, call, place,
      fmt::format("{}; the capture that began at {} is invalid now", what, capture.began));
}

cudaError_t record(Capture& capture, const char* call, Place place, cudaStream_t stream,
                   GraphNode node) {
  if (capture.is_invalid) {
    return Session::current().mistake(
        cudaErrorStreamCaptureInvalidated, call, place,
        fmt::format("an earlier error ended the capture that began at {}", capture.began));
  }
  auto& after = capture.streams[stream];
  node.after = after;
  after = {add_node(*capture.graph, std::move(node))};
  return cudaSuccess;
}

void join(std::vector<cudaGraphNode_t>& nodes, const std::vector<cudaGraphNode_t>& more) {
  for (const auto& each : more) {
    if (std::ranges::find(nodes, each) == nodes.end()) nodes.push_back(each);
  }
}

cudaError_t begin(const char* call, Place place, cudaStream_t stream, Capture capture) {
  auto& session = Session::current();
  const auto error = check_stream(call, place, stream);
  if (error != cudaSuccess) return error;
  if (is_legacy(stream)) {
    return session.mistake(cudaErrorStreamCaptureUnsupported, call, place,
                           "the default stream cannot be captured; create a stream");
  }
  if (const auto* other = session.graphs.capture_of(stream)) {
    return session.mistake(
        cudaErrorIllegalState, call, place,
        fmt::format("the stream is part of the capture that began at {}", other->began));
  }
  capture.origin = stream;
  capture.began = session.text_of(place);
  capture.number = session.new_handle();
  session.graphs.captures.push_back(std::move(capture));
  return cudaSuccess;
}

/// Nodes of other streams on which no node of the origin depends.
bool is_joined(const Capture& capture) {
  std::vector<cudaGraphNode_t> known = capture.streams.at(capture.origin);
  for (std::size_t i = 0; i < known.size(); ++i) {
    join(known, capture.graph->find(known[i])->after);
  }
  return std::ranges::all_of(capture.streams, [&](const auto& stream) {
    return std::ranges::all_of(stream.second, [&](const auto& node) {
      return std::ranges::find(known, node) != known.end();
    });
  });
}

/// An error where a kernel would run in a stream of another GPU.
cudaError_t check_stream_device(const char* call, Place place, cudaStream_t stream) {
  auto& session = Session::current();
  const auto found = session.streams.find(stream);
  if (found == session.streams.end() || found->second.device == Devices::current()) {
    return cudaSuccess;
  }
  const int device = found->second.device;
  return session.mistake(cudaErrorInvalidResourceHandle, call, place,
                         fmt::format("the stream is of GPU {}, and GPU {} is the current one: call "
                                     "cudaSetDevice({}) before the launch",
                                     device, Devices::current(), device));
}

}  // namespace

cudaError_t submit(const char* call, Place place, cudaStream_t stream, GraphNode node) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (const auto error = check_stream(call, place, stream); error != cudaSuccess) return error;
  if (node.type == cudaGraphNodeTypeKernel) {
    const auto error = check_stream_device(call, place, stream);
    if (error != cudaSuccess) return error;
  }
  if (auto* capture = session.graphs.capture_of(stream)) {
    return record(*capture, call, place, stream, std::move(node));
  }
  if (const auto error = refuse_default_stream(call, place, stream); error != cudaSuccess) {
    return error;
  }
  return node.run();
}

cudaError_t refuse_default_stream(const char* call, Place place, cudaStream_t stream) {
  auto& session = Session::current();
  if (!is_legacy(stream)) return cudaSuccess;
  for (auto& capture : session.graphs.captures) {
    if (!is_blocking(session, capture.origin)) continue;
    return invalidate(capture, cudaErrorStreamCaptureImplicit, call, place,
                      "the default stream depends on the captured stream");
  }
  return cudaSuccess;
}

cudaError_t refuse_wait(const char* call, Place place, std::optional<cudaStream_t> stream) {
  auto& session = Session::current();
  auto& captures = session.graphs.captures;
  auto* capture = stream             ? session.graphs.capture_of(*stream)
                  : captures.empty() ? nullptr
                                     : &captures.front();
  if (capture == nullptr) return cudaSuccess;
  return invalidate(*capture, cudaErrorStreamCaptureUnsupported, call, place,
                    "the host cannot wait for work that is only recorded");
}

bool record_event(cudaStream_t stream, Event& event) {
  auto& session = Session::current();
  const auto* capture = session.graphs.capture_of(stream);
  event.capture = capture == nullptr ? 0 : capture->number;
  if (capture == nullptr) return false;
  event.captured = capture->streams.at(stream);
  return true;
}

cudaError_t wait_for_event(Place place, cudaStream_t stream, const Event& event) {
  constexpr auto call = "cudaStreamWaitEvent";
  auto& session = Session::current();
  auto* own = session.graphs.capture_of(stream);
  if (event.capture == 0) {
    if (own == nullptr) return cudaSuccess;
    return invalidate(*own, cudaErrorStreamCaptureIsolation, call, place,
                      "the event was recorded outside of the capture");
  }
  const auto found = std::ranges::find(session.graphs.captures, event.capture, &Capture::number);
  if (found == session.graphs.captures.end()) {
    return session.mistake(cudaErrorCapturedEvent, call, place,
                           "the event was recorded in a capture that has ended; record it again");
  }
  if (own != nullptr && own != &*found) {
    return invalidate(
        *own, cudaErrorStreamCaptureMerge, call, place,
        fmt::format("the event belongs to the capture that began at {}", found->began));
  }
  join(found->streams[stream], event.captured);
  return cudaSuccess;
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t cudaStreamBeginCapture(Place place, cudaStream_t stream, cudaStreamCaptureMode) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto graph = std::make_shared<Graph>();
  const auto handle = new_handle<cudaGraph_t>();
  Capture capture = {.graph = graph, .handle = handle, .streams = {{stream, {}}}};
  const auto error = begin("cudaStreamBeginCapture", place, stream, std::move(capture));
  if (error == cudaSuccess) session.graphs.graphs[handle] = graph;
  return error;
}

cudaError_t triptychBeginCapture(Place place, cudaStream_t stream, cudaGraph_t graph,
                                 const cudaGraphNode_t* after, size_t count) {
  constexpr auto kCall = "cudaStreamBeginCaptureToGraph";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto into = graph_of(kCall, place, graph);
  if (into == nullptr) return session.last_error;
  if (const auto error = check_nodes(kCall, place, *into, {after, count}); error != cudaSuccess) {
    return error;
  }
  return begin(kCall, place, stream,
               {.graph = into, .handle = graph, .streams = {{stream, {after, after + count}}}});
}

cudaError_t cudaStreamEndCapture(Place place, cudaStream_t stream, cudaGraph_t* graph) {
  constexpr auto kCall = "cudaStreamEndCapture";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (graph != nullptr) *graph = nullptr;
  const auto* found = session.graphs.capture_of(stream);
  if (found == nullptr) {
    return session.mistake(cudaErrorIllegalState, kCall, place, "the stream is not captured");
  }
  if (found->origin != stream) {
    return session.mistake(
        cudaErrorStreamCaptureUnmatched, kCall, place,
        fmt::format("another stream began this capture, at {}; end it there", found->began));
  }
  const auto capture = *found;
  std::erase_if(session.graphs.captures,
                [&](const auto& each) { return each.number == capture.number; });
  if (capture.is_invalid) {
    session.graphs.erase(*capture.graph);
    return session.mistake(cudaErrorStreamCaptureInvalidated, kCall, place,
                           "an earlier error ended the capture");
  }
  if (!is_joined(capture)) {
    session.graphs.erase(*capture.graph);
    return session.mistake(cudaErrorStreamCaptureUnjoined, kCall, place,
                           "work of another captured stream is not joined; let this stream wait "
                           "for an event behind it");
  }
  if (graph != nullptr) *graph = capture.handle;
  return cudaSuccess;
}

cudaError_t triptychCaptureInfo(Place place, cudaStream_t stream, cudaStreamCaptureStatus* status,
                                unsigned long long* number, cudaGraph_t* graph,
                                const cudaGraphNode_t** after, size_t* count) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_stream("cudaStreamGetCaptureInfo", place, stream);
  if (error != cudaSuccess) return error;
  const auto* capture = session.graphs.capture_of(stream);
  *status = capture == nullptr    ? cudaStreamCaptureStatusNone
            : capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  if (capture == nullptr) return cudaSuccess;
  const auto& nodes = capture->streams.at(stream);
  if (number != nullptr) *number = capture->number;
  if (graph != nullptr) *graph = capture->handle;
  if (after != nullptr) *after = nodes.data();
  if (count != nullptr) *count = nodes.size();
  return cudaSuccess;
}

cudaError_t triptychUpdateCapture(Place place, cudaStream_t stream, const cudaGraphNode_t* after,
                                  size_t count, unsigned flags) {
  constexpr auto kCall = "cudaStreamUpdateCaptureDependencies";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto* capture = session.graphs.capture_of(stream);
  if (capture == nullptr) {
    return session.mistake(cudaErrorIllegalState, kCall, place, "the stream is not captured");
  }
  const auto error = check_nodes(kCall, place, *capture->graph, {after, count});
  if (error != cudaSuccess) return error;
  auto& nodes = capture->streams[stream];
  if (flags == cudaStreamSetCaptureDependencies) nodes.clear();
  join(nodes, {after, after + count});
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
