// SPDX-License-Identifier: Apache-2.0
#include "core/ops/all_ops.h"

#include "core/ops/assign.h"
#include "core/ops/attention.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/cast.h"
#include "core/ops/collectives.h"
#include "core/ops/concat.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/dropout.h"
#include "core/ops/expand.h"
#include "core/ops/fused_elementwise.h"
#include "core/ops/gather.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/normalization.h"
#include "core/ops/optimizers.h"
#include "core/ops/pad.h"
#include "core/ops/pool.h"
#include "core/ops/quantize.h"
#include "core/ops/quantized_conv.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/resize.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/transpose.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"

namespace triptych {
namespace {

template <class... Ops>
void add(std::vector<OpPtr>& ops) {
  (ops.push_back(make_op(Ops{})), ...);
}

std::vector<OpPtr> list_ops() {
  std::vector<OpPtr> ops;
  add<MatMul, Gemm, Conv, ConvWeightGradient, ConvTranspose>(ops);
  add<MaxPool, MaxPoolGradient, AveragePool, AveragePoolGradient, GlobalAveragePool>(ops);
  add<BatchNormalization, BatchNormalizationGradient, LayerNormalization, GroupNormalization,
      InstanceNormalization>(ops);
  for (const auto kind : all_unary_kinds()) ops.push_back(make_op(Unary(kind)));
  for (const auto kind : all_binary_kinds()) ops.push_back(make_op(Binary(kind)));
  add<FusedElementwise, Where, Cast>(ops);
  for (const auto kind : all_reduce_kinds()) ops.push_back(make_op(Reduce(kind)));
  add<ArgMax, Softmax, LogSoftmax, Attention>(ops);
  add<Reshape, Flatten, Squeeze, Unsqueeze, Identity, Transpose, Expand>(ops);
  add<Concat, Split, Slice, SliceGradient, Pad, PadGradient, Gather, GatherGradient, Resize,
      ResizeGradient>(ops);
  add<QuantizeLinear, DequantizeLinear, QuantizedConv, QuantizedConvTranspose>(ops);
  add<Dropout>(ops);
  add<BinaryCrossEntropyWithLogits, BinaryCrossEntropyWithLogitsGradient, SoftmaxCrossEntropyLoss,
      SoftmaxCrossEntropyLossGradient, DiceLoss>(ops);
  add<SgdUpdate, AdamUpdate, Assign>(ops);
  add<AllReduce, ReduceScatter, AllGather, Send, Receive>(ops);
  return ops;
}

}  // namespace

std::span<const OpPtr> all_ops() {
  static const std::vector<OpPtr> ops = list_ops();
  return ops;
}

const Op& find_op(std::string_view name) {
  for (const auto& op : all_ops()) {
    if (op->name() == name) return *op;
  }
  throw InvalidArgument("there is no operator \"" + std::string(name) +
                        "\"; names are ONNX's, as in Conv or ReduceSum");
}

}  // namespace triptych
