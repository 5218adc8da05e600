// The programs of a graph's nodes for a machine, with the matrix products that they compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "systolic/isa/simulator.h"

namespace triptych {

/// A matrix product: positions x values past a stationary matrix of so many columns.
struct Product {
  double positions = 0, values = 0, columns = 0;
  bool gradient = false;  ///< of weights: positions are summed, values remain

  double macs() const { return positions * values * columns; }
  double chain() const { return gradient ? positions : values; }
  double streamed() const { return gradient ? values : positions; }
  /// Weight tiles of an array of that size.
  double tiles(const mmu::MachineConfig& machine) const;
  /// Cycles that no schedule of that array's tiles could beat. Each tile takes as many as positions
  /// pass it, and at least as many as it has rows to replace. A chain of sums, where each waits for
  /// the one before, takes the time of its products in sequence.
  double array_bound(const mmu::MachineConfig& machine) const;
};

struct NodeProgram {
  std::string name;
  Product product;  ///< of one group of channels, without MACs for another operator
  mmu::Program program;
};

/// A preset's training step ("train") or inference ("infer"), optimised, with batch 1. `colour`:
/// with three input channels. For an ONNX file: inference.
Graph model_graph(const std::string& model, const std::string& mode, bool colour);

/// Figures of all nodes that run on the array, in order. Under bf16-exact, or int8 if the PEs are
/// of int8. `apart`: no node keeps its result in the buffer for the next one. `tiling`: sizes that
/// the planner must take.
std::vector<NodeProgram> programs_of(Graph graph, const mmu::MachineConfig& machine,
                                     bool apart = false, const std::string& tiling = "");

/// Bytes that a program asks of the DRAM, read and written.
double dram_bytes(const mmu::Counters& counters);

double number(auto value) { return static_cast<double>(value); }

}  // namespace triptych
