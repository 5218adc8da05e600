// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/conv_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/tensor/tensor.h"

namespace triptych::cuda::cudnn {
namespace {

/// The operands of cuDNN's problem.
struct Roles {
  Pass pass = Pass::Forward;
  ConvGeometry geometry;
  const Operand* x = nullptr;
  const Operand* w = nullptr;
  const Operand* y = nullptr;
};

Roles roles_of(const KernelQuery& query) {
  const auto& in = query.inputs;
  const auto& out = query.outputs[0];
  const auto& first = in[0].spec.shape;
  const auto& second = in[1].spec.shape;
  if (query.op.name() == Conv::kName) {
    return {Pass::Forward, query.as<Conv>().geometry(first, second), in.data(), &in[1], &out};
  }
  if (query.op.name() == ConvTranspose::kName) {
    return {Pass::DataGradient, query.as<ConvTranspose>().geometry(first, second), &out, &in[1],
            in.data()};
  }
  return {Pass::WeightGradient, query.as<ConvWeightGradient>().geometry(first, second), in.data(),
          &out, &in[1]};
}

/// Bytes that the operand's first element is surely aligned to, up to 16. A value that is written
/// into a concat starts at one of its channels. One of a single image does not tell that it is.
std::int64_t alignment_of(const Operand& operand) {
  const auto& shape = operand.spec.shape;
  if (operand.is_dense() && shape[0] > 1) return 16;
  std::int64_t plane_bytes = static_cast<std::int64_t>(dtype_size(operand.spec.dtype));
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis) plane_bytes *= shape[axis];
  return std::min<std::int64_t>(16, plane_bytes & -plane_bytes);
}

std::int64_t image_stride(const Operand& operand) {
  return operand.is_dense() ? 0 : operand.outer_stride;
}

/// Elements from a position of an operand that is stored channels last to the next. 0: its channels
/// are dense.
std::int64_t pitch_of(const Operand& operand) {
  if (!operand.channels_last || operand.channels_last->pitch == operand.spec.shape[1]) return 0;
  return operand.channels_last->pitch;
}

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Verdict accepts_operands(const KernelQuery& query) {
  const auto is_float = [](const Operand& operand) { return operand.spec.dtype == DType::F32; };
  if (!std::ranges::all_of(query.inputs, is_float) || !is_float(query.outputs[0])) {
    return Verdict::no("takes float32 operands");
  }
  const auto is_small = [](const Operand& operand) {
    return operand.spec.shape[0] * operand.outer_stride <= kMost;
  };
  if (!std::ranges::all_of(query.inputs.first(2), is_small) || !is_small(query.outputs[0])) {
    return Verdict::no("takes operands of up to 2^31 - 1 elements");
  }
  return Verdict::yes();
}

}  // namespace

Verdict accepts_conv(const KernelQuery& query, Layout layout) {
  if (query.contract != Contract::F32 && query.contract != Contract::Bf16) {
    return Verdict::no(fmt::format("no library states the order of its sums, as {} asks",
                                   to_string(query.contract)));
  }
  if (layout == Layout::NhwcBf16 && query.contract != Contract::Bf16) {
    return Verdict::no("rounds operands to bfloat16, which bf16 asks for");
  }
  if (layout == Layout::Nchw && query.contract != Contract::F32) {
    return Verdict::no("does not round operands where they lie; cudnn-nhwc does");
  }
  if (auto verdict = accepts_operands(query); !verdict.accepted) return verdict;
  const auto roles = roles_of(query);
  const auto& window = roles.geometry.window;
  for (const int axis : {0, 1}) {
    if (window.pad_begin[axis] != window.pad_end[axis]) {
      return Verdict::no(fmt::format("pads both sides alike, not {} and {}", window.pad_begin[axis],
                                     window.pad_end[axis]));
    }
  }
  if (!roles.w->is_dense()) return Verdict::no("needs dense weights");
  return Verdict::yes();
}

ConvProblem conv_problem(const KernelQuery& query, Layout layout) {
  const auto roles = roles_of(query);
  ConvProblem problem = {.pass = roles.pass, .geometry = roles.geometry, .layout = layout};
  if (layout == Layout::Nhwc) return problem;
  if (layout == Layout::NhwcBf16) {
    const bool finished = finish_of(query).any();
    problem.x_pitch = finished && roles.pass == Pass::DataGradient ? 0 : pitch_of(*roles.x);
    problem.y_pitch = finished && roles.pass == Pass::Forward ? 0 : pitch_of(*roles.y);
    return problem;
  }
  problem.x_image = image_stride(*roles.x);
  problem.y_image = image_stride(*roles.y);
  problem.x_alignment = alignment_of(*roles.x);
  problem.w_alignment = alignment_of(*roles.w);
  problem.y_alignment = alignment_of(*roles.y);
  if (roles.pass == Pass::Forward) {
    problem.bias = query.inputs.size() > 2 && query.as<Conv>().activation.empty();
  }
  return problem;
}

Finish finish_of(const KernelQuery& query) {
  if (query.op.name() == ConvWeightGradient::kName) return {};
  return {.bias = query.inputs.size() > 2,
          .relu = query.op.name() == Conv::kName && query.as<Conv>().activation == "relu"};
}

ConvTensors conv_tensors(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return {{kX, kW}, kY};
    case Pass::DataGradient:
      return {{kY, kW}, kX};
    case Pass::WeightGradient:
      break;
  }
  return {{kX, kY}, kW};
}

}  // namespace triptych::cuda::cudnn
