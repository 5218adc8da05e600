// How ranks share a training step: the kind of sharing with its numbers, and its text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/choice.h"
#include "parallel/strategies/mesh.h"

namespace triptych::parallel {

enum class PipelineOrder : std::uint8_t {
  GPipe,                  ///< all forward passes, then all backward passes
  OneForwardOneBackward,  ///< a backward pass as soon as it can: fewer activations are alive
};

}  // namespace triptych::parallel

namespace triptych {

template <>
inline constexpr auto kNamesOf<parallel::PipelineOrder> =
    std::to_array<std::pair<parallel::PipelineOrder, std::string_view>>(
        {{parallel::PipelineOrder::GPipe, "gpipe"},
         {parallel::PipelineOrder::OneForwardOneBackward, "1f1b"}});

}  // namespace triptych

namespace triptych::parallel {

struct Strategy {
  enum class Kind : std::uint8_t {
    Replicated,
    Sharded,
    Pipeline,
    Server,
    Central,
    LocalSgd,
    Hierarchical,
    Tensor,
    AsyncServer,
    AsyncLocalSgd
  };
  static constexpr int kBound = 3;         ///< of both Async kinds, by default
  static constexpr int kAsyncPeriod = 16;  ///< of AsyncLocalSgd, likewise

  Kind kind = Kind::Replicated;
  int shard_stage = 0;    ///< of Sharded: 1 to 3
  int micro_batches = 1;  ///< of Pipeline
  PipelineOrder order = PipelineOrder::OneForwardOneBackward;
  int period = 1;      ///< of LocalSgd and AsyncLocalSgd: steps between averages of the states
  int bound = kBound;  ///< of both Async kinds (Stretch)
  Mesh mesh = {};      ///< empty: all ranks along one axis, that of the kind

  bool operator==(const Strategy&) const = default;
};

/// "dp", "zero1", "zero2", "zero3", "layers" (a pipeline of one micro-batch), "pipeline:8",
/// "pipeline:8,gpipe", "ps-sync", "central" or "local-sgd:16" (each rank trains on its own, and the
/// caller averages all f32 states every 16 steps), "ps-async" or "ps-async:8" and "local-sgd-async"
/// (every 16 steps), "local-sgd-async:16" or "local-sgd-async:16,8" (asynchronous.h, where the
/// caller runs stretches and the last number is the bound). With a mesh: pipelines with
/// "dp=2,pp=2", each replicated, "tp" (tensor parallelism), likewise with "dp=2,tp=2", and "ddp2d"
/// with "node=2,device=4". Throws InvalidArgument for anything else.
Strategy strategy_from_string(std::string_view text, std::string_view mesh = {});

/// The same without a mesh, which ddp2d then still lacks.
Strategy strategy_without_mesh(std::string_view text);

/// The shortest text of the strategy. Its mesh has one of its own.
std::string to_string(const Strategy& strategy);

/// Throws InvalidArgument when the strategy and its mesh do not go together.
void validate(const Strategy& strategy);

/// True of the policies of asynchronous.h.
bool asynchronous(const Strategy& strategy);

}  // namespace triptych::parallel
