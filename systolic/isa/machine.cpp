// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

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
  double row_miss_ns;  ///< what of it other banks and channels do not hide
};

// ddr3: TPU v1's two channels of weight memory. hbm: one TPU v3 chip; hbm300: a TPU v2 core's half.
constexpr std::array kPresets{
    DramPreset{"ddr3", 34, 50, 8192, 16, 10}, DramPreset{"hbm", 900, 120, 2048, 256, 1.5},
    DramPreset{"hbm300", 300, 120, 2048, 128, 1.5}, DramPreset{"ideal", 0, 0, 2048, 8, 0}};
constexpr std::array<std::string_view, 2> kPeNames{"bf16", "int8"};
constexpr std::array<std::string_view, 3> kSchemeNames{"pass-through", "per-column", "drained"};
constexpr std::array<std::string_view, 2> kArrayNames{"fast", "grid"};

[[noreturn]] void reject(const std::string& problem) {
  throw std::invalid_argument("[machine] " + problem);
}

void check_range(std::string_view name, std::uint64_t value, std::uint64_t low,
                 std::uint64_t high) {
  if (value < low || value > high)
    reject(fmt::format("{} = {}: give {} to {}", name, value, low, high));
}

void check_power(std::string_view name, std::uint64_t value, std::uint64_t low,
                 std::uint64_t high) {
  check_range(name, value, low, high);
  if (!std::has_single_bit(value)) reject(fmt::format("{} = {}: give a power of two", name, value));
}

template <std::size_t n>
std::size_t index_of(std::string_view what, const std::array<std::string_view, n>& names,
                     std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    reject(fmt::format("{} '{}': give one of {}", what, name, fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

/// Reads members of an object; finish() refuses those that nobody asked for.
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
  void unsigned_number(std::string_view key, T& value) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_number_unsigned() ||
        member->get<std::uint64_t>() > std::numeric_limits<T>::max())
      reject(fmt::format("{}: {} = {}: give a number from 0 to {}", what_, key, member->dump(),
                         std::numeric_limits<T>::max()));
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
  reader.unsigned_number("latency", dram.latency);
  reader.unsigned_number("burst_bytes", dram.burst_bytes);
  reader.unsigned_number("row_bytes", dram.row_bytes);
  reader.unsigned_number("banks", dram.banks);
  reader.unsigned_number("row_miss", dram.row_miss);
  reader.finish();
  return dram;
}

void validate_dram(const DramConfig& dram) {
  if (!(dram.bytes_per_cycle >= 0) || dram.bytes_per_cycle > 1e6)
    reject(
        fmt::format("dram.bytes_per_cycle = {}: give 0 (unlimited) to 1e6", dram.bytes_per_cycle));
  if (dram.bytes_per_cycle > 0 && dram.bytes_per_cycle < 0.01)
    reject("dram.bytes_per_cycle: give at least 0.01");
  check_range("dram.latency", dram.latency, 0, 16384);
  check_power("dram.burst_bytes", dram.burst_bytes, 1, 4096);
  check_power("dram.row_bytes", dram.row_bytes, dram.burst_bytes, 1U << 20);
  check_range("dram.banks", dram.banks, 1, 4096);
  check_range("dram.row_miss", dram.row_miss, 0, 4096);
}

}  // namespace

std::string_view to_string(PeKind pe) { return kPeNames[static_cast<std::size_t>(pe)]; }
std::string_view to_string(WeightScheme scheme) {
  return kSchemeNames[static_cast<std::size_t>(scheme)];
}
std::string_view to_string(ArrayKind array) { return kArrayNames[static_cast<std::size_t>(array)]; }

ArrayKind array_kind(std::string_view name) {
  return static_cast<ArrayKind>(index_of("array", kArrayNames, name));
}

void validate(const MachineConfig& machine) {
  if (machine.name.empty()) reject("name: give one");
  check_power("rows", machine.rows, 2, 256);
  check_range("columns", machine.columns, 2, 256);
  if (!(machine.clock_mhz > 0) || machine.clock_mhz > 1e5)
    reject(fmt::format("clock_mhz = {}: give more than 0, at most 1e5", machine.clock_mhz));
  check_power("buffer_rows", machine.buffer_rows, 2, 1U << 24);
  check_power("accumulator_rows", machine.accumulator_rows, 2, 32768);
  check_range("weight_tiles", machine.weight_tiles, 1, 64);
  check_range("queue_depth", machine.queue_depth, 1, 256);
  check_range("vector_lanes", machine.vector_lanes, 1, 65536);
  check_range("dram_bytes", machine.dram_bytes, 4096, std::uint64_t{1} << 32);
  validate_dram(machine.dram);
}

MachineConfig parse_machine(std::string_view json) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::exception& error) {
    reject(fmt::format("no JSON: {}", error.what()));
  }
  MachineConfig machine;
  Reader reader(parsed, "machine");
  std::string pe(kPeNames[0]);
  std::string scheme(kSchemeNames[0]);
  reader.text("name", machine.name);
  reader.unsigned_number("rows", machine.rows);
  reader.unsigned_number("columns", machine.columns);
  reader.text("pe", pe);
  reader.real("clock_mhz", machine.clock_mhz);
  reader.unsigned_number("buffer_rows", machine.buffer_rows);
  reader.unsigned_number("accumulator_rows", machine.accumulator_rows);
  reader.unsigned_number("weight_tiles", machine.weight_tiles);
  reader.unsigned_number("queue_depth", machine.queue_depth);
  reader.text("weight_scheme", scheme);
  reader.unsigned_number("vector_lanes", machine.vector_lanes);
  reader.unsigned_number("dram_bytes", machine.dram_bytes);
  std::string array;
  reader.text("array", array);
  if (!array.empty()) machine.array = array_kind(array);
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
  Json json{{"name", machine.name},
            {"rows", machine.rows},
            {"columns", machine.columns},
            {"pe", to_string(machine.pe)},
            {"clock_mhz", machine.clock_mhz},
            {"buffer_rows", machine.buffer_rows},
            {"accumulator_rows", machine.accumulator_rows},
            {"weight_tiles", machine.weight_tiles},
            {"queue_depth", machine.queue_depth},
            {"weight_scheme", to_string(machine.weight_scheme)},
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
  if (machine.array) json["array"] = to_string(*machine.array);
  return json.dump(2) + "\n";
}

namespace {

MachineConfig read_machine(std::string_view name_or_path) {
  for (const ShippedMachine& machine : shipped_machines())
    if (machine.name == name_or_path) return parse_machine(machine.json);
  const std::filesystem::path path(name_or_path);
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    reject(fmt::format("no machine and no file '{}'; shipped are {}", name_or_path,
                       fmt::join(machine_names(), ", ")));
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return parse_machine(text.str());
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace

MachineConfig find_machine(std::string_view name_or_path) {
  MachineConfig machine = read_machine(name_or_path);
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
