// Registers of every PE in every cycle, of the RTL as Verilator simulates it: the reference of the
// array page. Called as: array_registers REQUEST.json, an object as the page makes it. Prints JSON.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "backends/all_backends.h"
#include "experiments/web/array_run.h"
#include "systolic/driver/driver.h"

namespace {

using namespace triptych;
using Json = nlohmann::ordered_json;

/// [cycle][PE][activation, weight, next weight, passing weight, sum], from cycle 1 on.
Json registers(const mmu::RunReport& report, const mmu::MachineConfig& machine) {
  Json by_cycle = Json::array();
  const std::size_t pes = std::size_t{machine.rows} * machine.columns;
  for (std::size_t i = 0; i < report.cells.size(); ++i) {
    if (i % pes == 0) by_cycle.push_back(Json::array());
    const mmu::CellState& cell = report.cells[i];
    const auto enable = std::uint32_t{cell.enabled} << 8 * machine.element_bytes();
    by_cycle.back().push_back(
        {cell.activation, cell.weight | enable, cell.waiting, cell.passing, cell.sum});
  }
  return by_cycle;
}

Json counters(const mmu::Counters& counters) {
  Json json;
  for (const auto& [name, value] : mmu::named_counts(counters)) json[name] = value;
  return json;
}

}  // namespace

int main(int, char** arguments) {
  std::ifstream file(arguments[1]);
  const Json request = Json::parse(file);
  const auto none = [](const mmu::PeStep&) {};
  auto run = web::run_on_array(find_backend("systolic"), web::array_problem(request),
                               request.at("machine").dump(), none);
  if (request.contains("program"))
    run = web::run_listing(mmu::read_listing(request.at("program").get<std::string>()), run, none);
  const auto rtl = mmu::open_machine(run.machine, mmu::Simulation::Rtl);
  std::ranges::copy(run.before, rtl->dram().begin());
  const auto report = rtl->run(run.program, {.cells_end = run.report.counters.cycles});
  const Json answer = {{"counters", counters(run.report.counters)},
                       {"rtl_counters", counters(report.counters)},
                       {"cycles", registers(report, run.machine)}};
  fmt::print("{}\n", answer.dump());
  return 0;
}
