// Common parts of the sections of the page of `compare`. Only for this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/page/page.h"

namespace triptych::compare {

struct ComparedMachine {
  page::JsonView part;
  std::string name;
  std::size_t colour = 0;
  bool available = false;
  bool bits_only = false;  ///< no time of it is shown

  bool timed() const { return available && !bits_only; }
};

/// The report with its machines in their order.
struct Compared {
  explicit Compared(const page::Json& report);

  page::JsonView root, results;
  std::vector<ComparedMachine> machines;
};

/// The machine with the baseline time of speedups.
std::string first_timed(const Compared& compared);
/// Whether an earlier machine has just the same `key` ("layers", "reuse", "energy"), as twin and
/// RTL have: a chart draws it once.
bool repeats(const Compared& compared, const ComparedMachine& machine, std::string_view key);
/// The machine's name and those of the machines that repeat its `key`.
std::string shared_name(const Compared& compared, const ComparedMachine& machine,
                        std::string_view key);

/// The series of a machine's numbers of one kind: there is one where they are all of one kind.
page::ChartSeries& series_of(page::Chart& chart, const std::string& name, const std::string& kind,
                             std::size_t colour);
/// A bar at a number of the report.
page::ChartPoint bar_of(const page::JsonView& value, std::string category, std::string label = {});
/// A point at category `category` (of bars) for a figure, in the series of the machine and its
/// kind.
void add_figure(page::Chart& chart, const ComparedMachine& machine, std::string_view category,
                const page::JsonView& figure);

// The sections, each from its heading on.
void write_verdict(page::Page& page, const Compared& compared);
void write_machines(page::Page& page, const Compared& compared);
void write_learning(page::Page& page, const Compared& compared);
void write_masks(page::Page& page, const Compared& compared);
void write_times(page::Page& page, const Compared& compared);
void write_layers(page::Page& page, const Compared& compared);
void write_placement(page::Page& page, const Compared& compared);
void write_roofline(page::Page& page, const Compared& compared);
void write_utilisation(page::Page& page, const Compared& compared);
void write_reuse(page::Page& page, const Compared& compared);
void write_energy(page::Page& page, const Compared& compared);
void write_recorded(page::Page& page, const Compared& compared);

}  // namespace triptych::compare
