// cuDNN's plans for the convolutions of U-Net L, from the description of an H200, without a GPU.
// (tests/unit/cuda/h200.json is written by hand. A plan that was built is not one that has run.)
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>

#include "backends/cuda/library/conv_problem.h"
#include "backends/cuda/library/cudnn_planner.h"
#include "core/io/input_file.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/runtime/placement.h"

namespace triptych::cuda::cudnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string h200() { return read_file(TRIPTYCH_SOURCE_DIR "/tests/unit/cuda/h200.json"); }

/// The convolutions of a training step of unet-l with 8 images, each problem once.
std::map<std::string, ConvProblem> unet_l_problems(Layout layout, Contract contract) {
  const auto training = build_training_graph(model_preset("unet-l"), {.batch = 8});
  const PlacementOptions options = {.contract = contract};
  std::map<std::string, ConvProblem> problems;
  for (const auto& node : training.graph.nodes()) {
    const auto name = node.op->name();
    if (name != Conv::kName && name != ConvTranspose::kName && name != ConvWeightGradient::kName) {
      continue;
    }
    const NodeQuery query(training.graph, node, options);
    const auto verdict = accepts_conv(query, layout);
    EXPECT_TRUE(verdict.accepted) << node.name << ": " << verdict.reason;
    const auto problem = conv_problem(query, layout);
    problems.emplace(to_string(problem), problem);
  }
  return problems;
}

struct Family {
  Contract contract;
  Layout layout;
  const char* name;
};

class UNetL : public testing::TestWithParam<Family> {};
INSTANTIATE_TEST_SUITE_P(Plans, UNetL,
                         testing::Values(Family{Contract::F32, Layout::Nchw, "f32_nchw"},
                                         Family{Contract::F32, Layout::Nhwc, "f32_nhwc"},
                                         Family{Contract::Bf16, Layout::Nhwc, "bf16_nhwc"},
                                         Family{Contract::Bf16, Layout::NhwcBf16, "bf16_native"}),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(UNetL, every_convolution_and_gradient_has_a_plan_that_the_contract_allows) {
  const auto [contract, layout, family] = GetParam();
  const auto problems = unet_l_problems(layout, contract);
  std::map<Pass, int> passes;
  Planner planner(h200());
  for (const auto& [name, problem] : problems) {
    ++passes[problem.pass];
    try {
      const auto plan = planner.plan(problem, contract);
      EXPECT_THAT(plan.json, HasSubstr("\"engineId\":" + std::to_string(plan.engine))) << name;
    } catch (const std::exception& error) {
      ADD_FAILURE() << family << ": " << name << ": " << error.what();
    }
  }
  for (const auto pass : {Pass::Forward, Pass::DataGradient, Pass::WeightGradient}) {
    EXPECT_GE(passes[pass], 10) << "problems of pass " << static_cast<int>(pass);
  }
}

ConvProblem small_problem(Pass pass = Pass::Forward) {
  ConvProblem problem = {.pass = pass,
                         .geometry = {.batch = 8, .in_channels = 64, .out_channels = 64},
                         .layout = Layout::Nhwc};
  auto& window = problem.geometry.window;
  for (const int axis : {0, 1}) {
    window.in[axis] = window.out[axis] = 64;
    window.kernel[axis] = 3;
    window.pad_begin[axis] = window.pad_end[axis] = 1;
  }
  return problem;
}

TEST(CudnnPlanner, the_contract_decides_on_tensor_cores) {
  Planner planner(h200());
  for (const auto pass : {Pass::Forward, Pass::DataGradient, Pass::WeightGradient}) {
    const auto exact = planner.plan(small_problem(pass), Contract::F32);
    const auto rounded = planner.plan(small_problem(pass), Contract::Bf16);
    EXPECT_NE(exact.engine, rounded.engine) << "pass " << static_cast<int>(pass);
  }
}

TEST(CudnnPlanner, bfloat16_operands_have_their_own_engines_and_pitch) {
  Planner planner(h200());
  for (const auto pass : {Pass::Forward, Pass::DataGradient, Pass::WeightGradient}) {
    auto problem = small_problem(pass);
    const auto copied = planner.plan(problem, Contract::Bf16);
    problem.layout = Layout::NhwcBf16;
    const auto stored = planner.plan(problem, Contract::Bf16);
    EXPECT_NE(copied.engine, stored.engine) << "pass " << static_cast<int>(pass);
    EXPECT_THAT(stored.json, HasSubstr("CUDNN_DATA_BFLOAT16"));
    problem.x_pitch = 128;
    EXPECT_THAT(planner.plan(problem, Contract::Bf16).json, HasSubstr("[524288,1,8192,128]"));
  }
}

TEST(CudnnPlanner, a_bias_is_part_of_the_graph) {
  auto problem = small_problem();
  problem.layout = Layout::Nchw;
  problem.bias = true;
  const auto plan = Planner(h200()).plan(problem, Contract::F32);
  EXPECT_THAT(plan.json, HasSubstr("CUDNN_POINTWISE_ADD"));
}

TEST(CudnnPlanner, images_may_lie_apart_as_in_a_concat) {
  auto problem = small_problem();
  problem.layout = Layout::Nchw;
  problem.y_image = 2 * 64 * 64 * 64;
  EXPECT_THAT(Planner(h200()).plan(problem, Contract::F32).json, HasSubstr("[524288,4096,64,1]"));
}

TEST(CudnnPlanner, no_engine_is_exact) {
  Planner planner(h200());
  try {
    planner.plan(small_problem(), Contract::Bf16Exact);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("forward x 8x64x64x64"),
                                    HasSubstr("order of its sums, as bf16-exact asks")));
  }
}

TEST(CudnnPlanner, a_plan_is_kept_and_loaded_again) {
  MemoryCache cache;
  const auto found = Planner(h200(), &cache).plan(small_problem(), Contract::F32);
  EXPECT_FALSE(found.kept);
  Planner later(h200(), &cache);
  const auto kept = later.plan(small_problem(), Contract::F32);
  EXPECT_TRUE(kept.kept);
  EXPECT_EQ(kept.json, found.json);
  EXPECT_EQ(kept.workspace_bytes, found.workspace_bytes);
  EXPECT_FALSE(later.plan(small_problem(), Contract::Bf16).kept);
  EXPECT_FALSE(later.plan(small_problem(Pass::WeightGradient), Contract::F32).kept);
  auto other_gpu = h200();
  other_gpu.replace(other_gpu.find("132"), 3, "114");
  EXPECT_FALSE(Planner(other_gpu, &cache).plan(small_problem(), Contract::F32).kept);
}

TEST(CudnnPlanner, a_damaged_plan_is_searched_again) {
  struct Damaged : MemoryCache {
    std::optional<std::string> find(const std::string&) override { return "{\"engine\": 7}"; }
  };
  Damaged cache;
  EXPECT_FALSE(Planner(h200(), &cache).plan(small_problem(), Contract::F32).kept);
}

TEST(CudnnPlanner, an_incomplete_description_is_an_error) {
  EXPECT_THROW(Planner(std::string("{\"warpSize\": 32}")), DeviceError);
}

TEST(CudnnFilter, refuses_what_a_contract_forbids_and_says_why) {
  const auto f32 = [](cudnnBackendNumericalNote_t note) {
    return refusal({{note}, {}}, Contract::F32);
  };
  const auto bf16 = [](cudnnBackendNumericalNote_t note) {
    return refusal({{note}, {}}, Contract::Bf16);
  };
  EXPECT_THAT(f32(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), HasSubstr("TF32"));
  EXPECT_EQ(bf16(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), "");
  for (const auto& reason :
       {f32(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP), bf16(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP),
        refusal({}, Contract::F32), refusal({}, Contract::Bf16)}) {
    EXPECT_EQ(reason, "");
  }
  const std::map<cudnnBackendNumericalNote_t, const char*> forbidden = {
      {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, "rounds its operands"},
      {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, "less than float32"},
      {CUDNN_NUMERICAL_NOTE_FFT, "FFT"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, "Winograd"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, "Winograd"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, "Winograd"},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, "Winograd"},
      {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, "other bits"}};
  for (const auto& [note, reason] : forbidden) {
    EXPECT_THAT(f32(note), HasSubstr(reason));
    EXPECT_THAT(bf16(note), HasSubstr(reason));
  }
  EXPECT_THAT(refusal({{}, {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}}, Contract::Bf16),
              HasSubstr("compiled when it is first used"));
  EXPECT_THAT(refusal({}, Contract::Bf16Exact), HasSubstr("order of its sums"));
  EXPECT_THAT(refusal({}, Contract::Int8), HasSubstr("order of its sums"));
}

/// A convolution's node as a kernel receives it in a query.
Verdict verdict_on(const Conv& conv, Contract contract, Layout layout, DType dtype = DType::F32) {
  Graph graph;
  const std::vector<ValueId> inputs = {graph.add_input("x", {dtype, {2, 4, 8, 8}}),
                                       graph.add_input("w", {dtype, {4, 4, 3, 3}})};
  graph.add_node(make_op(conv), inputs);
  const PlacementOptions options = {.contract = contract};
  return accepts_conv(NodeQuery(graph, graph.nodes()[0], options), layout);
}

TEST(CudnnAccepts, says_why_not) {
  Conv conv;
  EXPECT_TRUE(verdict_on(conv, Contract::F32, Layout::Nchw).accepted);
  EXPECT_TRUE(verdict_on(conv, Contract::Bf16, Layout::Nhwc).accepted);
  EXPECT_THAT(verdict_on(conv, Contract::Bf16, Layout::Nchw).reason, HasSubstr("cudnn-nhwc"));
  for (const auto layout : {Layout::Nchw, Layout::Nhwc}) {
    EXPECT_THAT(verdict_on(conv, Contract::Bf16Exact, layout).reason, HasSubstr("order"));
  }
  EXPECT_TRUE(verdict_on(conv, Contract::Bf16, Layout::NhwcBf16).accepted);
  EXPECT_THAT(verdict_on(conv, Contract::F32, Layout::NhwcBf16).reason, HasSubstr("bf16 asks for"));
  conv.pads = {1, 0, 0, 0};
  EXPECT_THAT(verdict_on(conv, Contract::F32, Layout::Nhwc).reason,
              HasSubstr("pads both sides alike, not 1 and 0"));
}

/// The problem of a node with a bias whose input and result are parts of concats.
template <class Op>
ConvProblem pitched_problem(const Op& op, bool bias) {
  const Operand x = {{DType::F32, {2, 8, 16, 16}}, 0, ChannelsLast{.pitch = 24}};
  const Operand y = {{DType::F32, {2, 8, 16, 16}}, 0, ChannelsLast{.pitch = 32}};
  std::vector<Operand> inputs = {x, Operand::dense({DType::F32, {8, 8, 1, 1}})};
  if (bias) inputs.push_back(Operand::dense({DType::F32, {8}}));
  const std::vector<const Tensor*> constants(inputs.size());
  return conv_problem({op, inputs, {&y, 1}, Contract::Bf16, constants}, Layout::NhwcBf16);
}

TEST(CudnnProblem, images_have_their_pitch_but_a_result_that_is_finished_is_dense) {
  const auto forward = pitched_problem(Conv(), false);
  EXPECT_EQ(forward.x_pitch, 24);
  EXPECT_EQ(forward.y_pitch, 32);
  const auto transposed = pitched_problem(ConvTranspose(), false);
  EXPECT_EQ(transposed.x_pitch, 32);
  EXPECT_EQ(transposed.y_pitch, 24);
  EXPECT_EQ(pitched_problem(Conv(), true).y_pitch, 0);
  EXPECT_EQ(pitched_problem(Conv(), true).x_pitch, 24);
  EXPECT_EQ(pitched_problem(ConvTranspose(), true).x_pitch, 0);
  EXPECT_EQ(pitched_problem(ConvTranspose(), true).y_pitch, 24);
  Conv relu;
  relu.activation = "relu";
  EXPECT_EQ(pitched_problem(relu, false).y_pitch, 0);
}

}  // namespace
}  // namespace triptych::cuda::cudnn
