// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/energy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/mapped.h"
#include "core/io/input_file.h"
#include "core/io/strict_json.h"
#include "experiments/machines/json_field.h"
#include "experiments/machines/published_machines.h"

namespace triptych::machines {
namespace {

constexpr int kTableSchema = 1;
constexpr std::int64_t kMaxTableBytes = 1 << 20;
constexpr double kMostPicojoule = 1e9;  ///< a millijoule
constexpr double kMostNanowatt = 1e9;   ///< a watt
constexpr std::array<std::string_view, kEnergyActions> kActionNames = {
    "float32 multiply", "float32 add",  "bf16 multiply",  "int8 multiply", "int32 add",
    "instruction",      "register bit", "FIFO bit",       "DRAM bit",      "HBM bit",
    "flip-flop clock",  "gate leakage", "RAM bit leakage"};

bool leaks(EnergyAction action) {
  return action == EnergyAction::GateLeakage || action == EnergyAction::RamBitLeakage;
}

double limited(const Field& field, double least, double most) {
  const double value = field.number(least);
  if (value > most) field.refuse(fmt::format("must be at most {:g}", most));
  return value;
}

/// The energy of one bit, or of one operation where the price has no "bits".
double joule_of(const Field& price) {
  const double bits = price.has("bits") ? limited(price.at("bits"), 1, 1e6) : 1;
  return limited(price.at("picojoule"), 0, kMostPicojoule) * 1e-12 / bits;
}

EnergyEvent action_of(EnergyAction action, const Field& price) {
  EnergyEvent event = {.name = std::string(to_string(action)), .source = {}};
  if (leaks(action)) {
    price.object({"nanowatt", "source"});
    event.joule = limited(price.at("nanowatt"), 0, kMostNanowatt) * 1e-9;
  } else {
    price.object({"picojoule", "bits", "source"});
    event.joule = joule_of(price);
  }
  event.source = price.at("source").text();
  return event;
}

}  // namespace

std::string_view to_string(EnergyAction action) {
  return kActionNames[static_cast<std::size_t>(action)];
}

EnergyTable::EnergyTable(std::string_view json, const std::string& origin) {
  try {
    const auto parsed = parse_strict<Field::Json>(std::string(json));
    require_schema(parsed, kTableSchema, "compare it with experiments/machines/energy/45nm.json");
    const Field file(parsed, origin, "");
    file.object({"schema", "name", "description", "actions", "memories"});
    name_ = file.at("name").text();
    description_ = file.at("description").text();
    const auto prices = file.at("actions");
    prices.each_member([&](const std::string& name, const Field& price) {
      const auto* const found = std::ranges::find(kActionNames, name);
      if (found == kActionNames.end())
        price.refuse(fmt::format("is no action; they are {}", fmt::join(kActionNames, ", ")));
      const auto index = static_cast<std::size_t>(found - kActionNames.begin());
      actions_[index] = action_of(static_cast<EnergyAction>(index), price);
    });
    for (std::size_t i = 0; i < kEnergyActions; ++i) {
      if (!actions_[i] && static_cast<EnergyAction>(i) != EnergyAction::HbmBit)
        prices.refuse(fmt::format("must have a member \"{}\"", kActionNames[i]));
    }
    std::set<std::string> names(kActionNames.begin(), kActionNames.end());
    file.at("memories").each([&](const Field& memory) {
      memory.object({"name", "bytes", "picojoule", "bits", "source"});
      const auto name = memory.at("name").text();
      if (!names.insert(name).second) memory.at("name").refuse("is used twice");
      memories_.push_back({limited(memory.at("bytes"), 1, 1e15),
                           {name, joule_of(memory), memory.at("source").text()}});
    });
    if (memories_.empty()) file.at("memories").refuse("must have at least one memory");
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("{}: {}", origin, error.what()));
  } catch (const IoError& error) {
    throw InvalidArgument(fmt::format("{}: {}", origin, error.what()));
  }
}

const EnergyEvent& EnergyTable::of(EnergyAction action) const {
  const auto& event = actions_[static_cast<std::size_t>(action)];
  return event ? *event : of(EnergyAction::DramBit);
}

const EnergyEvent& EnergyTable::memory_bit(double capacity) const {
  const auto distance = [capacity](const Memory& memory) {
    return std::fabs(std::log(std::max(capacity, 1.0) / memory.bytes));
  };
  return std::ranges::min_element(memories_, {}, distance)->bit;
}

std::vector<EnergyEvent> EnergyTable::events() const {
  std::vector<EnergyEvent> list;
  for (const auto& action : actions_) {
    if (action) list.push_back(*action);
  }
  for (const auto& memory : memories_) list.push_back(memory.bit);
  return list;
}

EnergyTable find_energy_table(std::string_view name_or_path) {
  for (const auto& table : energy_files()) {
    if (table.name == name_or_path) {
      return {table.json, fmt::format("experiments/machines/energy/{}.json", table.name)};
    }
  }
  const std::filesystem::path path(name_or_path);
  if (path.has_parent_path() || path.extension() == ".json") {
    return {read_file(path, kMaxTableBytes), fmt::format("\"{}\"", path.string())};
  }
  throw InvalidArgument(
      fmt::format("no energy table \"{}\"; choose from: {}, or give a JSON file (its path with a "
                  "\"/\" or the ending .json)",
                  name_or_path, fmt::join(energy_table_names(), ", ")));
}

std::vector<std::string> energy_table_names() {
  return mapped<std::string>(energy_files(), [](const auto& table) { return table.name; });
}

double total_joule(const std::vector<EnergyPart>& parts) {
  double sum = 0;
  for (const auto& part : parts) sum += part.joule();
  return sum;
}

}  // namespace triptych::machines
