// Registers of every PE in every cycle, from the waves of the RTL as Verilator simulates it: what
// the page of the array is held to. Called as: array_registers REQUEST.json, an object as the page
// makes it; prints JSON.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtkwave/fstapi.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/all_backends.h"
#include "experiments/labs/array_run.h"
#include "systolic/driver/driver.h"

namespace {

using namespace triptych;
using Json = nlohmann::ordered_json;

/// A signal's bits, most significant first, from a time on.
using Changes = std::vector<std::pair<std::uint64_t, std::string>>;

std::uint64_t number(const std::string& bits) {
  std::uint64_t value = 0;
  for (const char bit : bits) value = value << 1 | static_cast<std::uint64_t>(bit == '1');
  return value;
}

/// Waves of the array's signals, by name ("act_q[0][1]").
class ArrayWaves {
 public:
  explicit ArrayWaves(const std::string& path)
      : reader_(fstReaderOpen(path.c_str()), fstReaderClose) {
    std::vector<std::string> scopes;
    while (const fstHier* entry = fstReaderIterateHier(reader_.get())) {
      if (entry->htyp == FST_HT_SCOPE) scopes.emplace_back(entry->u.scope.name);
      if (entry->htyp == FST_HT_UPSCOPE) scopes.pop_back();
      if (entry->htyp != FST_HT_VAR || scopes.empty() || scopes.back() != "u_array") continue;
      const std::string name(entry->u.var.name, entry->u.var.name_length);
      handles_[name.substr(0, name.find(' '))] = entry->u.var.handle;
    }
    fstReaderSetFacProcessMaskAll(reader_.get());
    const auto told = [](void* waves, std::uint64_t time, fstHandle handle,
                         const unsigned char* bits) {
      static_cast<ArrayWaves*>(waves)->changes_[handle].emplace_back(
          time, reinterpret_cast<const char*>(bits));
    };
    fstReaderIterBlocks(reader_.get(), told, this, nullptr);
  }

  /// When the cycle's signals have settled.
  std::uint64_t at(const std::string& name, std::uint64_t cycle) const {
    const auto handle = handles_.find(name);
    if (handle == handles_.end()) throw std::runtime_error("no signal " + name);
    const Changes& changes = changes_.at(handle->second);
    const auto after =
        std::ranges::upper_bound(changes, 2 * cycle, {}, &Changes::value_type::first);
    return after == changes.begin() ? 0 : number((after - 1)->second);
  }

 private:
  std::unique_ptr<void, void (*)(void*)> reader_;
  std::map<std::string, fstHandle> handles_;
  std::map<fstHandle, Changes> changes_;
};

Json registers(const ArrayWaves& waves, const mmu::MachineConfig& machine, std::uint64_t cycles) {
  Json by_cycle = Json::array();
  for (std::uint64_t t = 0; t <= cycles; ++t) {
    Json pes = Json::array();
    for (std::uint32_t r = 0; r < machine.rows; ++r)
      for (std::uint32_t c = 0; c < machine.columns; ++c) {
        const auto at = [&](const char* name, std::uint32_t row) {
          return waves.at(fmt::format("{}[{}][{}]", name, row, c), t);
        };
        // psum_q[0] is the top's: a PE's sum is its row's operand below.
        pes.push_back({at("act_q", r), at("active_q", r), at("shadow_q", r), at("weight_q", r),
                       at("psum_q", r + 1)});
      }
    by_cycle.push_back(std::move(pes));
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
  const std::string waves = std::string(arguments[1]) + ".fst";
  const auto run = labs::run_on_array(find_backend("systolic"), labs::array_problem(request),
                                      request.at("machine").dump());
  const auto rtl = mmu::open_machine(run.machine, mmu::Simulation::Rtl);
  std::ranges::copy(run.before, rtl->dram().begin());
  const auto report = rtl->run(run.program, {.waves = waves});
  const Json answer = {
      {"counters", counters(run.report.counters)},
      {"rtl_counters", counters(report.counters)},
      {"y", std::vector<float>(run.y.as<float>().begin(), run.y.as<float>().end())},
      {"cycles", registers(ArrayWaves(waves), run.machine, report.counters.cycles)}};
  fmt::print("{}\n", answer.dump());
  return 0;
}
