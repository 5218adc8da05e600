// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/operands.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/io/npy.h"

namespace triptych::measure {
namespace {

/// Shape without its leading 1.
Shape without_batch(const Shape& shape) {
  Dims sizes;
  for (int i = 1; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return Shape(sizes);
}

std::shared_ptr<const Tensor> load(const std::string& file, const TensorSpec& wanted) {
  const auto found = load_npy_spec(file);
  const bool same = found.shape == wanted.shape ||
                    (wanted.shape[0] == 1 && found.shape == without_batch(wanted.shape));
  if (found.dtype != wanted.dtype || !same) {
    throw InvalidArgument(fmt::format("\"{}\" holds {}; the operator needs {}", file,
                                      to_string(found), to_string(wanted)));
  }
  Tensor loaded = load_npy(file);
  if (found.shape == wanted.shape) return std::make_shared<const Tensor>(std::move(loaded));
  return std::make_shared<const Tensor>(std::move(loaded).reshaped(wanted.shape));
}

}  // namespace

Operands load_operands(const std::vector<std::string>& files, const TensorSpec& first,
                       const TensorSpec& second) {
  if (files.empty()) return {};
  return {load(files.at(0), first), load(files.at(1), second)};
}

}  // namespace triptych::measure
