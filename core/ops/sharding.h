// Rules that many operators share for cutting their work into parts (Op::shardings).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// Elementwise with broadcasting: any axis of the output, of every input that has it.
std::vector<Sharding> elementwise_shardings(Specs inputs, Specs outputs);

/// Channel by channel: axis 1 of images, axis 0 of operands with one number per channel.
std::vector<Sharding> channel_shardings(Specs inputs, Specs outputs);

/// The operator is linear in its only input: its result for a term of a sum is a term of the
/// result.
Sharding linear_sharding();

/// Axes of y = a b. -1 for rows where a and y have none that may be cut.
struct ProductAxes {
  std::int64_t a_rows, a_sum, b_columns, b_sum, y_rows, y_columns;
};
/// By the sum (where nothing follows it: no bias, which is input 2, and no activation), by columns,
/// by rows.
std::vector<Sharding> product_shardings(const ProductAxes& axes, bool has_bias = false,
                                        bool has_activation = false);

}  // namespace triptych
