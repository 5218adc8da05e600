// SPDX-License-Identifier: Apache-2.0
#include "core/ops/all_ops.h"

#include "core/ops/op_list.h"

namespace triptych {

std::span<const OpPtr> all_ops() {
  static const OpList ops = [] {
    OpList list;
    add_all_ops(list);
    return list;
  }();
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
