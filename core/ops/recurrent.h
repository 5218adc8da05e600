// The steps of a recurrent layer, defined by matrix products and elementwise operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/ops/op.h"
#include "core/ops/unary.h"

namespace triptych {

enum class RecurrentCell { Rnn, Gru, Lstm };

/// One direction of ONNX's RNN, GRU or LSTM. The products of the sequence with the input weights
/// are done: step t starts from x[t] and adds h r' + bias. f32. Formulas: ONNX's operators of those
/// names.
/// x: [T, B, G H], with the bias of the inputs and the gates in ONNX's order (RNN: G = 1; GRU: z,
/// r, h; LSTM: i, o, f, c), r: [G H, H], bias: [G H], h: [B, H]. LSTM also has c: [B, H] and may
/// have peepholes: [3 H] (i, o, f). Outputs y: [T, B, H], the last h and, of LSTM, the last c.
/// bf16 contracts: r is an operand of products, and so is h, of which the gates see all bits. The
/// error bound holds for rows of r with magnitudes that sum to 1 at most.
struct Recurrent : OpOf<Recurrent> {
  static constexpr std::string_view kName = "Recurrent";
  static constexpr std::string_view kSummary = "h[t] = cell(x[t] + h[t-1] r' + bias)";
  static constexpr int kMultiplicands[] = {1};
  std::string cell = "LSTM";         ///< or "RNN", "GRU"
  std::string activations;           ///< "Sigmoid, Tanh, Tanh". Empty: ONNX's defaults
  bool reverse = false;              ///< from the last step to the first
  bool linear_before_reset = false;  ///< GRU: the reset gate multiplies h r' + bias, not h

  static void visit(auto& self, auto& visitor) {
    visitor("cell", self.cell);
    visitor("activations", self.activations);
    visitor("reverse", self.reverse);
    visitor("linear_before_reset", self.linear_before_reset);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

struct RecurrentRule {
  std::string_view name;
  RecurrentCell cell;
  std::int64_t gates;
  std::vector<UnaryKind> activations;  ///< ONNX's defaults, of one direction
};

/// Throws InvalidArgument unless it is "RNN", "GRU" or "LSTM".
const RecurrentRule& recurrent_rule(std::string_view cell);

/// The activation of this name. None: it is none of a recurrent layer.
std::optional<UnaryKind> recurrent_activation(std::string_view name);

/// A Recurrent in numbers.
struct RecurrentGeometry {
  RecurrentCell cell = RecurrentCell::Lstm;
  std::int64_t steps = 1, batch = 1, gates = 4, hidden = 1;
  bool has_peepholes = false;
  std::vector<UnaryKind> activations;  ///< of the gates, of the candidate and, of LSTM, of the cell

  /// Throws InvalidArgument for attributes or shapes that are no recurrent layer.
  static RecurrentGeometry of(const Recurrent& op, Specs inputs);
};

}  // namespace triptych
