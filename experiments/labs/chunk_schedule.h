// A collective that a student wrote for lab 8, as messages, and its price.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/page/json.h"
#include "parallel/collectives/schedule.h"

namespace triptych::labs {

/// All chunks in one message.
constexpr int kAllChunks = -1;

/// A message: chunk `chunk` of rank `from` is added to that of rank `to`, or takes its place. The
/// buffer of each of the N ranks is cut into N chunks.
struct ChunkMessage {
  int from = 0, to = 0;
  int chunk = 0;  ///< or kAllChunks
  bool adds = false;
};

/// The messages of one step, by sender. All carry the content from before the step. A rank writes
/// its incoming messages in this order.
using ChunkStep = std::vector<ChunkMessage>;

/// The same for the price model and the proofs (parallel/collectives): one schedule per rank, on
/// buffers of `elements` elements.
std::vector<parallel::Schedule> to_schedules(const std::vector<ChunkStep>& steps, int world_size,
                                             std::int64_t elements);

/// Modelled seconds of a grader's request: {"steps": [[[from, to, chunk, adds], ...], ...],
/// "world_size", "elements" (of float32), "wires" ("ring" or "switched"), "link": [latency,
/// bytes per second], "late_s" (the delay of rank 1)}. Throws InvalidArgument for ranks and chunks
/// that do not exist.
double chunk_schedule_seconds(const page::Json& request);

}  // namespace triptych::labs
