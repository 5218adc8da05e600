// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/save_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace triptych::mmu {
namespace {

/// A group of GTKWave and the scopes below mmu_top whose signals it shows, with all below them.
struct Group {
  std::string_view name;
  std::vector<std::string_view> scopes;
};

const std::array kGroups{
    Group{"Dispatch", {"u_dispatch", "u_tokens"}},
    Group{"Load", {"u_queue_load", "u_load"}},
    Group{"Weights", {"u_queue_weights", "u_weights", "u_loader"}},
    Group{"Compute", {"u_queue_compute", "u_compute"}},
    Group{"Data path", {"u_datapath"}},
    Group{"Store", {"u_queue_store", "u_store"}},
    Group{"Counters", {"u_counters"}},
};
constexpr std::string_view kTop = "mmu_top";

/// Flags of a GTKWave trace: hexadecimal, right-justified; begin and end of a group.
constexpr std::string_view kHexadecimal = "@22\n";
constexpr std::string_view kZoom = "*-6.000000 -1\n";  // some dozens of cycles at once
constexpr std::string_view kGroupBegin = "@800200\n";
constexpr std::string_view kGroupEnd = "@1000200\n";

/// Full names by group; the machine's own ports and wires under "".
using Signals = std::map<std::string_view, std::vector<std::string>>;

std::string_view group_of(const std::vector<std::string>& scopes) {
  const auto top = std::ranges::find(scopes, kTop);
  if (top == scopes.end() || top + 1 == scopes.end()) return {};
  for (const Group& group : kGroups)
    if (std::ranges::find(group.scopes, *(top + 1)) != group.scopes.end()) return group.name;
  return {};
}

/// Elements of memories and tables would hide the rest, as would a clock in every module.
bool is_shown(const std::vector<std::string>& scopes, std::string_view name) {
  if (std::ranges::find(scopes, kTop) == scopes.end()) return false;
  const std::size_t range = name.find('[');
  if (range != std::string_view::npos && name.find(':', range) == std::string_view::npos)
    return false;
  return scopes.back() == kTop || !name.starts_with("clk_i");
}

/// Sorts the signals of a file into groups.
class Reader : public RtlHierarchy {
 public:
  void enter(std::string_view module) override { scopes_.emplace_back(module); }
  void leave() override { scopes_.pop_back(); }
  void signal(std::string_view full_name) override {
    std::string name(full_name);
    std::erase(name, ' ');
    if (is_shown(scopes_, name))
      signals[group_of(scopes_)].push_back(fmt::format("{}.{}", fmt::join(scopes_, "."), name));
  }

  Signals signals;

 private:
  std::vector<std::string> scopes_;
};

std::string group_text(std::string_view name, const std::vector<std::string>& signals) {
  std::string text = fmt::format("{}-{}\n{}", kGroupBegin, name, kHexadecimal);
  for (const std::string& signal : signals) text += signal + "\n";
  return text + fmt::format("{}-{}\n", kGroupEnd, name);
}

}  // namespace

void write_save_file(const RtlModel& model, const std::string& waves) {
  Reader reader;
  if (!model.read_hierarchy(waves.c_str(), reader))
    throw std::runtime_error(fmt::format("[mmu] cannot read waves from '{}'", waves));
  Signals& signals = reader.signals;
  const std::filesystem::path path = waves;
  std::string text = fmt::format("[dumpfile] \"{}\"\n{}[timestart] 0\n",
                                 std::filesystem::absolute(path).string(), kZoom);
  text += group_text("Machine", signals[""]);
  for (const Group& group : kGroups) text += group_text(group.name, signals[group.name]);
  std::filesystem::path target = path;
  target.replace_extension(".gtkw");
  std::ofstream file(target, std::ios::binary);
  file << text;
  if (!file.flush())
    throw std::runtime_error(fmt::format("[mmu] cannot write '{}'", target.string()));
}

}  // namespace triptych::mmu
