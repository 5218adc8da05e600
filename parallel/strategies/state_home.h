// Where a state of the model lives that not every rank has whole, and how its parts are cut.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace triptych::parallel {

struct StateHome {
  int rank = -1;            ///< the only one that has it. -1: each has a part, in order
  TensorSpec whole;         ///< as a model on one rank has it
  std::string axis = "dp";  ///< of the mesh, along which the parts are
  std::int64_t split = -1;  ///< the cut (ReduceScatter)
  StateRole role = StateRole::Other;
};

/// A part of `whole` cut into `parts` as `split` of ReduceScatter says, with zeros where a flat
/// tensor does not divide.
Tensor part_of_tensor(const Tensor& whole, int part, int parts, std::int64_t split = -1);

/// The inverse: of all parts' bytes, one after another. Throws InvalidArgument when there are more
/// or fewer bytes.
Tensor join_parts(std::span<const std::byte> bytes, const TensorSpec& whole, int parts,
                  std::int64_t split = -1);

}  // namespace triptych::parallel
