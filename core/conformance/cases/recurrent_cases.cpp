// SPDX-License-Identifier: Apache-2.0
#include "core/ops/recurrent.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

struct LayerSizes {
  std::int64_t steps, batch, hidden;
};

std::vector<InputRule> layer_operands(const Recurrent& op, const LayerSizes& s,
                                      bool peepholes = false) {
  const auto rows = recurrent_rule(op.cell).gates * s.hidden;
  const double most = 1 / static_cast<double>(s.hidden);  // the error bound's condition
  std::vector<InputRule> inputs = {f32({s.steps, s.batch, rows}),
                                   f32({rows, s.hidden}, -most, most), f32({rows}),
                                   f32({s.batch, s.hidden})};
  if (op.cell == "LSTM") inputs.push_back(f32({s.batch, s.hidden}));
  if (peepholes) inputs.push_back(f32({3 * s.hidden}));
  return inputs;
}

Recurrent cell(std::string name, std::string activations = "") {
  Recurrent op;
  op.cell = std::move(name);
  op.activations = std::move(activations);
  return op;
}

Recurrent reversed(Recurrent op) {
  op.reverse = true;
  return op;
}

Recurrent linear(Recurrent op) {
  op.linear_before_reset = true;
  return op;
}

}  // namespace

void add_recurrent_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, const Recurrent& op, const LayerSizes& sizes,
                       bool peepholes = false, bool gradient = true) {
    cases.push_back({std::move(name), make_op(op), layer_operands(op, sizes, peepholes), gradient});
  };
  add("rnn", cell("RNN"), {3, 2, 4});
  add("rnn_relu", cell("RNN", "Relu"), {2, 1, 3}, false, false);  // kinks
  add("gru", cell("GRU"), {3, 2, 4});
  add("gru_linear", linear(cell("GRU")), {3, 2, 4});
  add("gru_reverse", reversed(cell("GRU", "Tanh, Sigmoid")), {2, 3, 2});
  add("lstm", cell("LSTM"), {3, 2, 4});
  add("lstm_reverse", reversed(cell("LSTM")), {2, 1, 3});
  add("lstm_peepholes", cell("LSTM"), {3, 2, 3}, true);
  add("lstm_activations", cell("LSTM", "Tanh, Sigmoid, Sigmoid"), {2, 2, 3});
  add("one_step_of_one", cell("LSTM"), {1, 1, 1});
  // More gates than a block of the kernels, whole ones and not.
  add("lstm_blocks", cell("LSTM"), {4, 3, 64}, false, false);
  add("gru_blocks", linear(cell("GRU")), {3, 5, 50}, false, false);
  add("gru_reset_blocks", cell("GRU"), {3, 2, 70}, false, false);
  add("rnn_blocks", cell("RNN"), {5, 9, 130}, false, false);
}

}  // namespace triptych::conformance
