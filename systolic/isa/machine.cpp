// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "systolic/isa/machine_files.h"
#include "systolic/isa/shipped_machines.h"

namespace triptych::mmu {
namespace {

using Json = nlohmann::ordered_json;

struct DramPreset {
  std::string_view name;
  double gigabytes_per_second;
  double latency_ns;
  std::uint32_t row_bytes;
  std::uint32_t banks;
  double row_miss_ns;  ///< the part of it that other banks and channels do not hide
};

// ddr3: TPU v1's two channels of weight memory. hbm: one TPU v3 chip. hbm300: a TPU v2 core's half.
constexpr std::array kPresets{
    DramPreset{"ddr3", 34, 50, 8192, 16, 10}, DramPreset{"hbm", 900, 120, 2048, 256, 1.5},
    DramPreset{"hbm300", 300, 120, 2048, 128, 1.5}, DramPreset{"ideal", 0, 0, 2048, 8, 0}};
constexpr std::array<std::string_view, 2> kPeNames{"bf16", "int8"};
constexpr std::array<std::string_view, 3> kSchemeNames{"pass-through", "per-column", "drained"};
constexpr std::array<std::string_view, 3> kDataflowNames{"weight-stationary", "output-stationary",
                                                         "both"};
constexpr std::array<std::string_view, 2> kArrayNames{"fast", "grid"};

[[noreturn]] void reject(const std::string& problem) {
  throw std::invalid_argument("[machine] " + problem);
}

/// Range of a whole number.
struct Limits {
  std::uint64_t low, high;
  bool power_of_two = false;
};

[[noreturn]] void reject_value(std::string_view name, const std::string& value,
                               const Limits& range) {
  reject(fmt::format("{} = {}: give {} to {}", name, value, range.low, range.high));
}

void check(std::string_view name, std::uint64_t value, const Limits& range) {
  if (value < range.low || value > range.high) reject_value(name, std::to_string(value), range);
  if (range.power_of_two && value > 0 && !std::has_single_bit(value))
    reject(fmt::format("{} = {}: give a power of two", name, value));
}

/// visit(key, member, range) for every whole number of a machine, or of its DRAM.
template <class Machine, class Visit>
void visit_numbers(Machine& machine, Visit visit) {
  visit("rows", machine.rows, Limits{2, 256});
  visit("columns", machine.columns, Limits{2, 256});
  visit("pe_latency", machine.pe_latency, Limits{1, 3});
  visit("buffer_rows", machine.buffer_rows, Limits{2, 1U << 24, true});
  visit("accumulator_rows", machine.accumulator_rows, Limits{2, 32768, true});
  visit("weight_tiles", machine.weight_tiles, Limits{1, 64});
  visit("queue_depth", machine.queue_depth, Limits{1, 256});
  visit("vector_lanes", machine.vector_lanes, Limits{1, 65536});
  visit("vector_rows", machine.vector_rows, Limits{0, 32768, true});
  visit("arrays", machine.arrays, Limits{1, 8});
  visit("dram_bytes", machine.dram_bytes, Limits{4096, std::uint64_t{1} << 32});
}
template <class Dram, class Visit>
void visit_dram_numbers(Dram& dram, Visit visit) {
  visit("latency", dram.latency, Limits{0, 16384});
  visit("burst_bytes", dram.burst_bytes, Limits{1, 4096, true});
  visit("row_bytes", dram.row_bytes, Limits{1, 1U << 20, true});
  visit("banks", dram.banks, Limits{1, 4096});
  visit("row_miss", dram.row_miss, Limits{0, 4096});
}

template <std::size_t n>
std::size_t index_of(std::string_view what, const std::array<std::string_view, n>& names,
                     std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    reject(fmt::format("{} '{}': give one of {}", what, name, fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

constexpr std::string_view kMachine = "machine";
/// Version of the file format. Users write such files by hand: one without a version has this one.
constexpr std::uint32_t kSchema = 1;

/// Reads members of an object. finish() refuses those that nobody asked for.
class Reader {
 public:
  Reader(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
    if (!json.is_object()) reject(what_ + ": give a JSON object");
  }

  const Json* find(std::string_view key) {
    known_.emplace_back(key);
    const auto member = json_.find(std::string(key));
    return member == json_.end() ? nullptr : &*member;
  }
  template <class T>
  void whole_number(std::string_view key, T& value, const Limits& range) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_number_unsigned() || member->get<std::uint64_t>() > range.high)
      reject_value(what_ == kMachine ? std::string(key) : fmt::format("{}.{}", what_, key),
                   member->dump(), range);
    value = member->get<T>();
  }
  void real(std::string_view key, double& value) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_number()) reject(fmt::format("{}: {}: give a number", what_, key));
    value = member->get<double>();
  }
  void text(std::string_view key, std::string& value) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_string()) reject(fmt::format("{}: {}: give a string", what_, key));
    value = member->get<std::string>();
  }
  void finish() const {
    for (const auto& [key, member] : json_.items())
      if (std::ranges::find(known_, key) == known_.end())
        reject(
            fmt::format("{}: unknown key '{}'; known are {}", what_, key, fmt::join(known_, ", ")));
  }

 private:
  const Json& json_;
  std::string what_;
  std::vector<std::string> known_;
};

DramConfig parse_dram(const Json& json, double clock_mhz) {
  if (json.is_string()) return dram_preset(json.get<std::string>(), clock_mhz);
  Reader reader(json, "dram");
  DramConfig dram;
  dram.preset = "custom";
  reader.text("preset", dram.preset);
  if (dram.preset != "custom") dram = dram_preset(dram.preset, clock_mhz);
  reader.real("bytes_per_cycle", dram.bytes_per_cycle);
  visit_dram_numbers(dram, [&](const char* key, std::uint32_t& value, const Limits& range) {
    reader.whole_number(key, value, range);
  });
  reader.finish();
  return dram;
}

/// Cycles without progress of any unit while the DRAM serves the longest request behind another
/// one.
double longest_wait(const MachineConfig& machine) {
  const auto& dram = machine.dram;
  constexpr double backlog = 32;  // of the bus, when it grants a request
  const auto row_bytes =
      std::max({machine.rows * machine.element_bytes(), machine.columns * machine.element_bytes(),
                machine.columns * std::uint32_t{4}});
  const double bursts = std::ceil(static_cast<double>(row_bytes) / dram.burst_bytes) + 1;
  const double burst = dram.bytes_per_cycle > 0 ? dram.burst_bytes / dram.bytes_per_cycle : 0;
  return (1 + machine.arrays) * (bursts * (burst + dram.row_miss) + backlog) + dram.latency;
}

/// The RTL's watchdog stops a machine after 65,536 cycles without progress of any unit.
void validate_wait(const MachineConfig& machine) {
  constexpr double watchdog = 65536;
  const double wait = longest_wait(machine);
  if (wait < watchdog) return;
  reject(fmt::format(
      "dram: a request may take {:.0f} cycles, and the RTL's watchdog stops it after {:.0f}; give "
      "more bytes_per_cycle, shorter bursts, or less latency and row_miss",
      wait, watchdog));
}

void validate_dram(const DramConfig& dram) {
  if (!(dram.bytes_per_cycle >= 0) || dram.bytes_per_cycle > 1e6)
    reject(
        fmt::format("dram.bytes_per_cycle = {}: give 0 (unlimited) to 1e6", dram.bytes_per_cycle));
  if (dram.bytes_per_cycle > 0 && dram.bytes_per_cycle < 0.01)
    reject("dram.bytes_per_cycle: give at least 0.01");
  visit_dram_numbers(dram, [](const char* key, std::uint32_t value, const Limits& range) {
    check(fmt::format("dram.{}", key), value, range);
  });
  check("dram.row_bytes", dram.row_bytes, {dram.burst_bytes, 1U << 20});
}

/// Throws for a key that is repeated in one object, and for more keys than any machine has: each
/// new key is compared with all before it.
Json parse_json(std::string_view text) {
  constexpr std::size_t max_keys = 1000;
  std::vector<std::set<std::string>> keys;
  const auto check_keys = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed).second)
      reject(fmt::format("key '{:.100}' appears twice", parsed.get<std::string>()));
    if (!keys.empty() && keys.back().size() > max_keys)
      reject(fmt::format("an object has more than {} keys", max_keys));
    return true;
  };
  try {
    return Json::parse(text, check_keys);
  } catch (const Json::exception& error) {
    reject(fmt::format("no JSON: {}", error.what()));
  }
}

void validate_vector_unit(const MachineConfig& machine) {
  if (!machine.has_vector_unit()) return;
  if (machine.vector_rows == 1) reject("vector_rows = 1: give 0 (no vector unit) or at least 2");
  if (machine.pe != PeKind::Bf16)
    reject("vector_rows and pe 'int8': the vector unit computes binary32 numbers; give pe 'bf16'");
  if (machine.pe_latency > 1)
    reject(
        fmt::format("vector_rows and pe_latency = {}: a lane multiplies in one cycle and adds in "
                    "the next; give pe_latency 1",
                    machine.pe_latency));
}

}  // namespace

std::string_view to_string(PeKind pe) { return kPeNames[static_cast<std::size_t>(pe)]; }
std::string_view to_string(WeightScheme scheme) {
  return kSchemeNames[static_cast<std::size_t>(scheme)];
}
std::string_view to_string(Dataflows dataflows) {
  return kDataflowNames[static_cast<std::size_t>(dataflows)];
}
std::string_view to_string(ArrayKind array) { return kArrayNames[static_cast<std::size_t>(array)]; }

ArrayKind array_kind(std::string_view name) {
  return static_cast<ArrayKind>(index_of("array", kArrayNames, name));
}

void validate(const MachineConfig& machine) {
  if (machine.name.empty()) reject("name: give one");
  if (!(machine.clock_mhz > 0) || machine.clock_mhz > 1e5)
    reject(fmt::format("clock_mhz = {}: give more than 0, at most 1e5", machine.clock_mhz));
  visit_numbers(machine, check);
  if (machine.has_output_stationary() && machine.pe_latency > 1)
    reject(fmt::format(
        "dataflows '{}' and pe_latency = {}: a PE that keeps its sum adds to it in every "
        "cycle; give pe_latency 1 or dataflows 'weight-stationary'",
        to_string(machine.dataflows), machine.pe_latency));
  validate_vector_unit(machine);
  validate_dram(machine.dram);
  validate_wait(machine);
}

MachineConfig parse_machine(std::string_view json) {
  const Json parsed = parse_json(json);
  MachineConfig machine;
  Reader reader(parsed, std::string(kMachine));
  std::string pe(kPeNames[0]);
  std::string scheme(kSchemeNames[0]);
  auto schema = kSchema;
  reader.whole_number("schema", schema, {0, std::numeric_limits<std::uint32_t>::max()});
  if (schema != kSchema)
    reject(fmt::format("schema = {}: this version reads schema {}", schema, kSchema));
  reader.text("name", machine.name);
  visit_numbers(machine, [&](const char* key, auto& value, const Limits& range) {
    reader.whole_number(key, value, range);
  });
  reader.text("pe", pe);
  reader.real("clock_mhz", machine.clock_mhz);
  reader.text("clock_source", machine.clock_source);
  reader.text("clock_closed_in", machine.clock_closed_in);
  reader.text("weight_scheme", scheme);
  std::string dataflows(kDataflowNames[0]);
  reader.text("dataflows", dataflows);
  machine.dataflows = static_cast<Dataflows>(index_of("dataflows", kDataflowNames, dataflows));
  std::string array;
  reader.text("array", array);
  if (!array.empty()) machine.array = array_kind(array);
  reader.text("rtl", machine.rtl);
  machine.pe = static_cast<PeKind>(index_of("pe", kPeNames, pe));
  machine.weight_scheme =
      static_cast<WeightScheme>(index_of("weight_scheme", kSchemeNames, scheme));
  const Json* dram = reader.find("dram");
  machine.dram = dram == nullptr ? dram_preset("ddr3", machine.clock_mhz)
                                 : parse_dram(*dram, machine.clock_mhz);
  reader.finish();
  validate(machine);
  return machine;
}

std::string to_json(const MachineConfig& machine) {
  Json json{{"schema", kSchema},
            {"name", machine.name},
            {"rows", machine.rows},
            {"columns", machine.columns},
            {"pe", to_string(machine.pe)},
            {"pe_latency", machine.pe_latency},
            {"clock_mhz", machine.clock_mhz},
            {"clock_source", machine.clock_source},
            {"clock_closed_in", machine.clock_closed_in},
            {"buffer_rows", machine.buffer_rows},
            {"accumulator_rows", machine.accumulator_rows},
            {"weight_tiles", machine.weight_tiles},
            {"queue_depth", machine.queue_depth},
            {"weight_scheme", to_string(machine.weight_scheme)},
            {"dataflows", to_string(machine.dataflows)},
            {"vector_lanes", machine.vector_lanes},
            {"dram_bytes", machine.dram_bytes},
            {"dram",
             {{"preset", machine.dram.preset.empty() ? "custom" : machine.dram.preset},
              {"bytes_per_cycle", machine.dram.bytes_per_cycle},
              {"latency", machine.dram.latency},
              {"burst_bytes", machine.dram.burst_bytes},
              {"row_bytes", machine.dram.row_bytes},
              {"banks", machine.dram.banks},
              {"row_miss", machine.dram.row_miss}}}};
  if (machine.arrays > 1) json["arrays"] = machine.arrays;
  if (machine.has_vector_unit()) json["vector_rows"] = machine.vector_rows;
  if (machine.array) json["array"] = to_string(*machine.array);
  if (!machine.rtl.empty()) json["rtl"] = absolute_path(machine.rtl);
  return json.dump(2) + "\n";
}

MachineConfig find_machine(std::string_view name_or_path) {
  const auto shipped = std::ranges::find(shipped_machines(), name_or_path, &ShippedMachine::name);
  MachineConfig machine;
  if (shipped != shipped_machines().end())
    machine = parse_machine(shipped->json);
  else if (name_or_path.starts_with('{'))
    machine = parse_machine(name_or_path);
  else
    machine = read_machine_file(name_or_path);
  machine.source = name_or_path;
  return machine;
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const ShippedMachine& machine : shipped_machines()) names.emplace_back(machine.name);
  return names;
}

DramConfig dram_preset(std::string_view name, double clock_mhz) {
  const auto preset = std::ranges::find(kPresets, name, &DramPreset::name);
  if (preset == kPresets.end())
    reject(fmt::format("no DRAM preset '{}': give ddr3, hbm, hbm300 or ideal", name));
  const auto cycles = [&](double ns) {
    return static_cast<std::uint32_t>(std::lround(ns * clock_mhz / 1000));
  };
  DramConfig dram;
  dram.preset = name;
  dram.bytes_per_cycle = preset->gigabytes_per_second * 1000 / clock_mhz;
  dram.latency = std::max(1U, cycles(preset->latency_ns));
  dram.row_bytes = preset->row_bytes;
  dram.banks = preset->banks;
  dram.row_miss = cycles(preset->row_miss_ns);
  return dram;
}

}  // namespace triptych::mmu
