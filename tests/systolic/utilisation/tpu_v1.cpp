// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/utilisation/tpu_v1.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/ops/quantized_conv.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/utilisation/measure.h"

namespace triptych {
namespace {

/// A row of layers. Each reads the result of the one before.
class LayerGraph {
 public:
  explicit LayerGraph(std::int64_t batch) : batch_(batch) {}

  /// False: the layer is not of that row.
  bool add(const TpuLayer& layer) {
    const Shape x = {batch_, layer.in, layer.height, layer.width};
    if (!y_) y_ = graph_.add_input("x", {DType::I8, x});
    if (graph_.spec(*y_).shape != x) return false;
    QuantizedConv conv;
    conv.kernel_shape = {layer.kernel, layer.kernel};
    conv.pads = Dims(4, layer.kernel / 2);
    std::vector inputs = {*y_};
    inputs.push_back(parameter(DType::I8, {layer.out, layer.in, layer.kernel, layer.kernel}));
    for (int file = 0; file < 3; ++file) inputs.push_back(parameter(DType::I32, {layer.out}));
    y_ = graph_.add_node(make_op(conv), inputs)[0];
    return true;
  }
  Graph take() {
    graph_.mark_output("y", *y_);
    return std::move(graph_);
  }

 private:
  ValueId parameter(DType dtype, Shape shape) {
    return graph_.add_state(fmt::format("parameter{}", parameters_++),
                            Tensor(TensorSpec{dtype, std::move(shape)}));
  }

  std::int64_t batch_;
  Graph graph_;
  std::optional<ValueId> y_;
  int parameters_ = 0;
};

/// The layers of an application, in as few rows as they make.
std::vector<Graph> rows_of(const TpuApplication& application) {
  std::vector<Graph> rows;
  std::optional<LayerGraph> row(application.batch);
  for (const auto& layer : application.layers) {
    for (int i = 0; i < layer.repeats; ++i) {
      if (row->add(layer)) continue;
      rows.push_back(row->take());
      row.emplace(application.batch).add(layer);
    }
  }
  rows.push_back(row->take());
  return rows;
}

/// Work of the weights unit and the array on a program, waiting for nobody else.
mmu::Program weights_alone(const mmu::Program& program) {
  mmu::Program alone;
  for (auto instruction : program) {
    const auto opcode = instruction.opcode();
    const auto unit = mmu::find_opcode(opcode)->unit;
    const bool stays = unit == mmu::Unit::Weights || unit == mmu::Unit::Compute;
    if (!stays && opcode != mmu::Opcode::Halt) continue;
    instruction.words[0] &= ~0xFF00U;  // its tokens
    alone.push_back(instruction);
  }
  return alone;
}

mmu::Counters counters_of(const TpuApplication& application, TpuTraffic traffic,
                          const mmu::MachineConfig& machine) {
  mmu::Counters counters;
  for (auto& row : rows_of(application)) {
    const bool apart = traffic != TpuTraffic::Kept;
    for (const auto& [name, product, program] : programs_of(std::move(row), machine, apart)) {
      const auto& timed = traffic == TpuTraffic::Weights ? weights_alone(program) : program;
      counters += mmu::estimate(timed, machine).counters;
    }
  }
  return counters;
}

}  // namespace

double TpuLayer::weights() const { return number(repeats * in * out * kernel * kernel); }

double TpuApplication::macs() const {
  double sum = 0;
  for (const auto& layer : layers) sum += layer.weights() * number(layer.height * layer.width);
  return sum * number(batch);
}

double TpuApplication::roofline_tops() const {
  double sum = 0;
  for (const auto& layer : layers) sum += layer.weights();
  return std::min(91.75, 2 * macs() / sum * 34e9 / 1e12);
}

TpuShares run_on_tpu_v1(const TpuApplication& application, TpuTraffic traffic) {
  const auto machine = mmu::find_machine("tpu-v1");
  const auto c = counters_of(application, traffic, machine);
  const auto cycles = number(c.cycles);
  const auto stalls = [&c](mmu::Stall stall) {
    return number(c.stall_cycles.at(static_cast<std::size_t>(stall)));
  };
  TpuShares shares = {
      .active = number(c.issue_cycles) / cycles,
      .weight_stall = stalls(mmu::Stall::Dram) / cycles,
      .weight_shift = stalls(mmu::Stall::Weights) / cycles,
      .useful = application.macs() / number(machine.rows * machine.columns) / cycles,
      .tops = 2 * application.macs() / cycles * machine.clock_mhz / 1e6};
  shares.other = 1 - shares.active - shares.weight_stall - shares.weight_shift;
  return shares;
}

std::vector<TpuApplication> tpu_applications() {
  return {
      // Square layers, weights shared out evenly.
      {.name = "MLP0",
       .batch = 200,
       .layers = {{.repeats = 5, .in = 2000, .out = 2000}},
       .weights = 20e6,
       .paper = {.127, .539, .159, .175, .125, 12.3}},
      {.name = "MLP1",
       .batch = 168,
       .layers = {{.repeats = 4, .in = 1118, .out = 1118}},
       .weights = 5e6,
       .paper = {.106, .442, .134, .319, .094, 9.7}},
      // Gates of an LSTM of n cells: [x, h], 2 n values, to 4 n. Vector layers run in parallel to
      // the array.
      {.name = "LSTM0",
       .batch = 64,
       .layers = {{.repeats = 24, .in = 1040, .out = 2080}},
       .weights = 52e6,
       .paper = {.082, .581, .158, .179, .082, 3.7}},
      {.name = "LSTM1",
       .batch = 96,
       .layers = {{.repeats = 37, .in = 678, .out = 1356}},
       .weights = 34e6,
       .paper = {.105, .621, .171, .103, .063, 2.8}},
      // AlphaGo: 2,888 operations per weight are 8 boards of 19 x 19. No MACs are unused in the
      // paper: 256 channels. 5 x 5 from 48 planes first, 1 x 1 last, as Silver et al. (2016).
      {.name = "CNN0",
       .batch = 8,
       .layers = {{.in = 48, .out = 256, .kernel = 5, .height = 19, .width = 19},
                  {.repeats = 13, .in = 256, .out = 256, .kernel = 3, .height = 19, .width = 19},
                  {.repeats = 2, .in = 256, .out = 256, .height = 19, .width = 19}},
       .weights = 8e6,
       .paper = {.782, 0, 0, .218, .782, 86.0}},
      // Half of the active MACs are unused for shallow maps: 128 channels. Their size and the four
      // connected layers, which have the other weights, follow from weights and operations.
      {.name = "CNN1",
       .batch = 32,
       .layers = {{.repeats = 72, .in = 128, .out = 128, .kernel = 3, .height = 22, .width = 23},
                  {.repeats = 4, .in = 4728, .out = 4728}},
       .weights = 100e6,
       .paper = {.462, .281, .070, .187, .225, 14.1}},
  };
}

void print_tpu_v1() {
  fmt::print("{:<6} {:<18} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7}   roofline\n", "", "", "TOPS",
             "useful%", "active%", "stall%", "shift%", "other%");
  const auto line = [](const std::string& name, const std::string& what, const TpuShares& s) {
    fmt::print("{:<6} {:<18} {:6.1f} {:7.1f} {:7.1f} {:7.1f} {:7.1f} {:7.1f}", name, what, s.tops,
               100 * s.useful, 100 * s.active, 100 * s.weight_stall, 100 * s.weight_shift,
               100 * s.other);
  };
  for (const auto& application : tpu_applications()) {
    line(application.name, "paper", application.paper);
    fmt::print("   {:.1f} TOPS\n", application.roofline_tops());
    line("", "weights alone", run_on_tpu_v1(application, TpuTraffic::Weights));
    fmt::print("\n");
    line("", "activations too", run_on_tpu_v1(application, TpuTraffic::All));
    fmt::print("\n");
    line("", "activations kept", run_on_tpu_v1(application, TpuTraffic::Kept));
    fmt::print("\n");
  }
}

}  // namespace triptych
