// Problems of `triptych bench`: whole models, matrix products, attention and convolutions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "experiments/machines/energy.h"
#include "experiments/measure/model_plan.h"
#include "experiments/measure/operands.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

/// A convolution, or a gradient of it.
enum class ConvPass : std::uint8_t { Forward, Data, Weights };

}  // namespace triptych::measure

namespace triptych {

template <>
inline constexpr auto kNamesOf<measure::ConvPass> =
    std::to_array<std::pair<measure::ConvPass, std::string_view>>(
        {{measure::ConvPass::Forward, "forward"},
         {measure::ConvPass::Data, "data"},
         {measure::ConvPass::Weights, "weights"}});

}  // namespace triptych

namespace triptych::measure {

/// Options of `bench` and of its subcommands.
struct BenchOptions {
  ModelConfig model;                   ///< of whole models
  InferenceGraph inference = nullptr;  ///< as PlanRequest has it
  training::ExecutionConfig machine;
  Mode mode = Mode::Infer;
  OptimizerKind optimizer = OptimizerKind::Adam;  ///< of a training step
  float momentum = 0.9F;                          ///< of sgd
  std::string batches = "1";
  std::string threads = "0";
  std::string sizes = "256..1024";
  bool constant_b = false;  ///< matmul: B is a constant, as weights are
  std::string kernels;      ///< of one operator: a comma list, "best" among it, "all", or empty
  std::vector<std::int64_t> shape = {64, 64, 128, 128};  ///< conv: in, out, height, width
  std::int64_t window = 3;
  ConvPass pass = ConvPass::Forward;
  std::vector<double> scales;         ///< int8: of x, weights and results. Empty: int32 results
  Operands operands;                  ///< of conv
  std::string lengths = "256..1024";  ///< attention
  std::int64_t heads = 1, head_size = 64;
  bool causal = false;
  bool gradient = false;  ///< of attention, too
  int repeats = 0;
  std::size_t memory_limit = 0;
  bool layers = false;
  std::string energy{machines::kDefaultEnergyTable};  ///< table of an array's actions, with layers
  std::string device;  ///< also modelled: a device file or a published machine, or empty
  bool source = false;

  /// True when the machine counts the actions of kernels, as stand-ins for others do.
  bool counts() const;
};

/// Problem of one row.
struct Problem {
  std::string name;
  std::string kernel;  ///< as requested. Empty: the plan's own
  std::int64_t batch = 1;
  std::function<Plan(const DeviceSet&)> plan;
  bool optional = false;               ///< left out where the machine cannot run it
  std::vector<GivenInput> given = {};  ///< inputs that are not noise
};

/// Rows of a, columns of a and rows of b, columns of b.
struct ProductShape {
  std::int64_t m = 256, k = 256, n = 256;
};
struct ProductOptions {
  ProductShape shape;
  std::string kernel;
  std::int64_t batch = 1;
  bool constant_b = false;
  bool int8 = false;                ///< the contract. b is then a constant
  std::vector<double> scales = {};  ///< as BenchOptions has them
  Operands operands = {};
};
/// One matrix product, or `batch` of them. Under int8 it is a 1 x 1 convolution of integers.
Problem product_problem(const ProductOptions& options);

std::vector<Problem> model_problems(const BenchOptions& options, std::int64_t batch);
/// Square products of `sizes`, one for each kernel asked for.
std::vector<Problem> matmul_problems(const BenchOptions& options, const Device& device,
                                     std::int64_t batch);
/// Self-attention of `lengths`, perhaps with its gradient, one for each kernel asked for.
/// "materialised" is the operator's expansion, with scores in memory.
std::vector<Problem> attention_problems(const BenchOptions& options, const Device& device,
                                        std::int64_t batch);
/// "conv/64>64@128x128k3", and the pass unless it is forward.
std::string conv_name(const BenchOptions& options);
/// Shapes of the operands: x and weights, dy and weights, or x and dy.
std::pair<Shape, Shape> conv_operand_shapes(const BenchOptions& options, std::int64_t batch);
/// One convolution or one of its gradients, by a kernel or, if that is empty, by the plan's choice.
Problem conv_problem(const BenchOptions& options, const std::string& kernel, std::int64_t batch);
/// The same once for each kernel asked for.
std::vector<Problem> conv_problems(const BenchOptions& options, const Device& device,
                                   std::int64_t batch);

}  // namespace triptych::measure
