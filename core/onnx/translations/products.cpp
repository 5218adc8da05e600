// Products of matrices.
// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/node_import.h"
#include "core/ops/matmul.h"

namespace triptych::onnx {
namespace {

std::vector<ValueId> matmul(NodeImport& n) {
  return {n.like(0, n.apply(make_op(MatMul{}), {n.f32(0), n.f32(1)}))};
}

std::vector<ValueId> gemm(NodeImport& n) {
  Gemm op;
  op.alpha = n.number("alpha", 1);
  op.beta = n.number("beta", 1);
  op.transA = n.flag("transA");
  op.transB = n.flag("transB");
  if (n.opset < 7) n.ignore("broadcast");  // a shape that does not fit is refused anyway
  std::vector<ValueId> operands = {n.f32(0), n.f32(1)};
  if (n.has(2)) operands.push_back(n.f32(2));
  return {n.like(0, n.apply(make_op(op), operands))};
}

}  // namespace

void add_products_translations(TranslationList& list) {
  list.insert(list.end(), {{"MatMul", matmul}, {"Gemm", gemm}});
}

}  // namespace triptych::onnx
