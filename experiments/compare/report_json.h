// A comparison as the results of report.json (docs/reference/json.md), from which the page is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "experiments/compare/machine_run.h"
#include "experiments/compare/recorded.h"
#include "experiments/page/json.h"

namespace triptych::compare {

/// The first value of the first step that differs between two machines.
struct Difference {
  std::string first, second;  ///< labels of the machines
  std::int64_t step = -1;     ///< from 0. -1: a second run found none
  std::string node;           ///< empty: none
  std::size_t output = 0;     ///< of the node
  std::int64_t element = 0;   ///< the first that differs, row-major
  double values[2] = {0, 0};  ///< of it, on either machine
  std::int64_t different_elements = 0;
  std::int64_t of = 0;  ///< elements of that output
  std::string why;      ///< the guarantee of the machines, in words
};

/// Trains `steps` steps on both machines at most. Throws as run_machine does.
Difference find_difference(const MachineRequest& first, const MachineRequest& second,
                           const Experiment& experiment, std::int64_t steps,
                           const std::atomic<bool>& interrupted);

/// Why the results of two machines may, or must not, differ.
std::string promise_of(const MachineRequest& first, const MachineRequest& second);

using page::figure_json;
using page::Json;

/// One requested machine: its results, or the reason for its absence.
struct Column {
  MachineRequest request;
  std::optional<MachineResult> result;
  Absence absence;  ///< where there is no result
};

/// Agreement of the machines.
struct Agreement {
  bool losses = true, weights = true, masks = true;
  std::vector<std::string> machines;   ///< that were compared
  std::vector<std::string> different;  ///< of them, those that do not agree with the first
  std::size_t differs = 0;             ///< column of the first of these

  bool identical() const { return losses && weights && masks; }
};

struct Comparison {
  Experiment experiment;
  Contract contract = Contract::F32;  ///< of the machines that name none of their own
  std::string command;
  std::vector<Column> columns;
  std::optional<Difference> difference;
  std::string busy;  ///< a warning where other programs disturbed the measurement, may be empty
  std::string no_difference;  ///< why the first difference is unknown, may be empty
  std::vector<RecordedSession> recorded;
  machines::EnergyTable energy = machines::find_energy_table(machines::kDefaultEnergyTable);

  /// The first machine that ran, against the others that did.
  Agreement verdict() const;
  /// The first with valid times. nullptr: none.
  const MachineResult* baseline() const;
};

Json to_json(const Comparison& comparison);

/// One machine's part (machine_json.cpp), all but the speedup. Masks are compared with those of
/// `first`, energy is priced by `table`.
Json machine_json(const MachineResult& result, const MachineResult& first,
                  const machines::EnergyTable& table);

/// The baseline's time over the machine's. Nothing where either says nothing.
std::optional<double> speedup_of(const Comparison& comparison, const MachineResult& result);

}  // namespace triptych::compare
