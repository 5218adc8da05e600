// Single operators of the int8 contract as graphs: int8 operands, and int32 or int8 results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/graph.h"
#include "experiments/measure/bench_problems.h"

namespace triptych::measure {

/// a [m, k] times b [k, n] as a 1 x 1 convolution over m positions of k channels. A batch is a
/// convolution of as many groups. a is the input "x", with the rows along the height.
Graph int8_product_graph(const ProductOptions& options);
/// The given a as that input.
std::shared_ptr<const Tensor> int8_product_input(const ProductOptions& options);
/// The convolution or its gradient for the data. Its input is "x".
Graph int8_conv_graph(const BenchOptions& options, std::int64_t batch);

}  // namespace triptych::measure
