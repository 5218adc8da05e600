// Chooses cuDNN's engine for a convolution: the heuristic's first that the numeric contract allows
// and that gives the same bits each time. Needs no GPU: a description of one is enough.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backends/cuda/library/cudnn_conv_graph.h"
#include "core/base/contract.h"
#include "core/base/text_cache.h"

namespace triptych::cuda::cudnn {

/// Description of an engine by cuDNN.
struct EngineNotes {
  std::set<cudnnBackendNumericalNote_t> numerical;
  std::set<cudnnBackendBehaviorNote_t> behaviour;
};

/// The reason against an engine with these notes under a contract. Empty: none. Every
/// contract forbids further rounding of operands, sums in less than float32, other algorithms than
/// the sum of products (FFT, Winograd), and sums with an order that varies from run to run. f32
/// also forbids tensor cores, since those of float32 operands round them to TF32. Engines that are
/// compiled when they are first used are left out, too: that takes seconds for each shape.
std::string refusal(const EngineNotes& notes, Contract contract);

/// A plan in cuDNN's JSON form. A cache stores it, and a kernel loads it.
struct ConvPlan {
  std::string json;
  std::int64_t engine = 0;
  std::int64_t workspace_bytes = 0;
  bool kept = false;  ///< it came from the cache
};

class Planner {
 public:
  /// The GPU of a handle.
  explicit Planner(cudnnHandle_t handle, TextCache* cache = nullptr);
  /// A GPU that need not be here, by cuDNN's JSON description of it. Throws DeviceError where that
  /// is not complete.
  explicit Planner(const std::string& description, TextCache* cache = nullptr);

  /// Throws UnsupportedError with the reason of each refused engine when none is left.
  ConvPlan plan(const ConvProblem& problem, Contract contract);
  /// cuDNN's description of the GPU.
  std::string description() const;

 private:
  ConvPlan search(const ConvProblem& problem, Contract contract);
  ConvPlan load(const std::string& json) const;
  std::vector<Descriptor> configurations(const OperationGraph& graph, cudnnBackendHeurMode_t mode);

  Descriptor device_;
  TextCache* cache_;
};

}  // namespace triptych::cuda::cudnn
