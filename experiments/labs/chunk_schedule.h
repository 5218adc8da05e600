// A collective that a student writes as a text: at step s rank r sends a chunk to another rank. The
// buffer of each of the N ranks is cut into N chunks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/collectives/schedule.h"

namespace triptych::labs {

/// All chunks in one message.
constexpr int kAllChunks = -1;

/// A message: chunk `chunk` of rank `from` is added to that of rank `to`, or takes its place.
struct ChunkMessage {
  int from = 0, to = 0;
  int chunk = 0;  ///< or kAllChunks
  bool adds = false;
};

/// The messages of one step, by sender and line. All are read as the buffers are when the step
/// begins. A rank writes its incoming messages in this order.
using ChunkStep = std::vector<ChunkMessage>;

/// Steps that the text describes for that many ranks. A text has lines
///   steps N - 1
///   send chunk (r - s) % N to (r + 1) % N add
///   send all to 0 add if r > 0
/// `steps` begins a phase with steps s = 0, 1, .... Each step has the `send` lines below it, for
/// every rank r that fulfils the condition. The formulas (formula.h) know N, r and s. `add` or
/// `replace` is the action of the receiver. `#` begins a comment. Throws InvalidArgument, which
/// names the line, for a text that is none, and for chunks and ranks that do not exist.
std::vector<ChunkStep> read_chunk_schedule(std::string_view text, int world_size);

/// The same for the machinery that prices and proves (parallel/collectives): one schedule per rank,
/// on buffers of `elements` elements.
std::vector<parallel::Schedule> to_schedules(const std::vector<ChunkStep>& steps, int world_size,
                                             std::int64_t elements);

/// The buffers of all ranks after the steps.
std::vector<std::vector<float>> run_on(const std::vector<ChunkStep>& steps,
                                       std::vector<std::vector<float>> buffers);

/// Bytes that each rank sends to each other one: [from][to].
std::vector<std::vector<std::int64_t>> bytes_by_link(const std::vector<ChunkStep>& steps,
                                                     int world_size, std::int64_t elements);

/// The first wrong sum as text: "after the last step chunk 1 of rank 2 holds the contributions of
/// ranks 0, 1 and 1; ...". Empty when every chunk of every rank holds each rank's contribution
/// once. One that had a contribution which a step replaced goes before others.
std::string first_wrong_sum(const std::vector<ChunkStep>& steps, int world_size);

}  // namespace triptych::labs
