// Times of the nodes of a plan on a machine known by its figures: the roofline (Williams, Waterman
// and Patterson, CACM 52(4), 2009) and the fraction of it that kernels reach.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/runtime/plan.h"
#include "experiments/machines/machine_figures.h"

namespace triptych::machines {

/// Assumptions about a machine where its figures say nothing. All of them are knobs.
struct Assumptions {
  std::string format = "f32";     ///< the peak of products and convolutions
  double product_fraction = 0.6;  ///< of the roofline that products and convolutions reach
  double other_fraction = 0.75;   ///< likewise all other operators
  double launch_s = 8e-6;         ///< of a kernel on a GPU. The others start theirs for nothing
  int ranks = 1;                  ///< that share the machine: each has so many-th part of its rates
  int busy = 0;                   ///< of them at work at once. 0: all
};

/// The format of a contract's products, in the spelling of the peaks.
std::string_view format_of(Contract contract);

class NodeTimes {
 public:
  /// Throws InvalidArgument when the machine has no peak of the format, naming those it has, and
  /// for fractions that are not above 0.
  NodeTimes(MachineFigures figures, Assumptions assumptions);

  /// The roofline alone, in seconds: the larger of FLOP / peak and bytes / bandwidth, the bandwidth
  /// being that of the nearest cache that holds them, else the main memory's. FLOP are counted
  /// directly: a kernel that saves multiplications may be faster.
  double bound(const Cost& cost) const;
  /// launch + bound / fraction that kernels of that operator reach. A kernel that is not in the
  /// machine's table has the fraction of the operator's others, and those of no measured operator
  /// the assumed one.
  Duration time(const Op& op, std::string_view kernel, const Cost& cost) const;
  /// Time of one step. 0 where it runs nothing.
  Duration time(const Plan& plan, const Step& step) const;
  /// The sum over all steps: they run one after another.
  Duration time(const Plan& plan) const;

  const MachineFigures& figures() const { return figures_; }
  const Assumptions& assumptions() const { return assumptions_; }

 private:
  /// For this number of ranks and of working ranks, otherwise the first measurement. nullptr: there
  /// is none.
  const EfficiencyTable* table() const;
  double fraction(const Op& op, std::string_view kernel, const Cost& cost) const;

  MachineFigures figures_;
  Assumptions assumptions_;
  double peak_ = 0;
  double launch_s_ = 0;
};

/// The fraction at work of that size and intensity, from points at others: the mean of their
/// logarithms, weighted by the inverse square of their distance in factors of two (Shepard, "A
/// two-dimensional interpolation function for irregularly-spaced data", ACM 1968).
double interpolate(const std::vector<Efficiency>& points, double bound_s, double flops_per_byte);

/// Op::cost of one node of a graph.
Cost cost_of(const Graph& graph, const Node& node);

}  // namespace triptych::machines
