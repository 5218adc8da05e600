// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/save_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

#include "systolic/isa/isa.h"
#include "systolic/sim/wave_files.h"

namespace triptych::mmu {
namespace {

namespace fs = std::filesystem;

/// A group of GTKWave and the scopes below mmu_top with signals that it shows, with all below them.
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

/// Flags of a GTKWave trace: hexadecimal, right-justified. The same, translated by a file. Begin
/// and end of a group.
constexpr std::string_view kHexadecimal = "@22\n";
constexpr std::string_view kTranslated = "@2022\n";
constexpr std::string_view kZoom = "*-15.000000 -1\n";  // some dozens of cycles at once
constexpr std::string_view kGroupBegin = "@800200\n";
constexpr std::string_view kGroupEnd = "@1000200\n";

/// Begins of names, where the module says nothing else.
constexpr std::array kNamed{
    std::pair{std::string_view("act"), WaveFormat::Elements},
    std::pair{std::string_view("lanes"), WaveFormat::Elements},
    std::pair{std::string_view("buffer_data"), WaveFormat::Elements},
    std::pair{std::string_view("load_data"), WaveFormat::Elements},
    std::pair{std::string_view("weights_data"), WaveFormat::Elements},
    std::pair{std::string_view("weight_i"), WaveFormat::Weights},
    std::pair{std::string_view("weight_o"), WaveFormat::Weights},
    std::pair{std::string_view("weight_q"), WaveFormat::Weights},
    std::pair{std::string_view("weight_data"), WaveFormat::Weights},
    std::pair{std::string_view("psum"), WaveFormat::Sums},
    std::pair{std::string_view("sum"), WaveFormat::Sums},
    std::pair{std::string_view("read_data"), WaveFormat::Sums},
    std::pair{std::string_view("instruction_i"), WaveFormat::Instruction},
    std::pair{std::string_view("word"), WaveFormat::Instruction},
    std::pair{std::string_view("head"), WaveFormat::Instruction},
};
/// Translation files, by format. Their names end in these.
constexpr std::array kTranslations{
    std::pair{WaveFormat::Elements, std::string_view("elements.txt")},
    std::pair{WaveFormat::Weights, std::string_view("weights.txt")},
    std::pair{WaveFormat::Sums, std::string_view("sums.txt")},
    std::pair{WaveFormat::Instruction, std::string_view("instructions.txt")},
};

fs::path translation_of(const fs::path& waves, std::string_view ending) {
  fs::path file = waves;
  file.replace_extension(ending);
  return file;
}

/// "name [7:0]" has 8 bits.
std::size_t width_of(std::string_view name) {
  const std::size_t bracket = name.rfind('['), colon = name.rfind(':');
  if (bracket == name.npos || colon == name.npos || colon < bracket) return 1;
  const auto number = [](std::string_view text) { return std::stoul(std::string(text)); };
  const std::size_t high = number(name.substr(bracket + 1)), low = number(name.substr(colon + 1));
  return std::max(high, low) - std::min(high, low) + 1;
}

struct Signal {
  std::string name;
  std::uint32_t handle = 0;
  WaveFormat format = WaveFormat::Hexadecimal;
};
/// By group. The machine's own ports and wires under "".
using Signals = std::map<std::string_view, std::vector<Signal>>;

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
  void signal(std::string_view full_name, std::uint32_t handle) override {
    std::string name(full_name);
    std::erase(name, ' ');
    if (is_shown(scopes_, name))
      signals[group_of(scopes_)].push_back({fmt::format("{}.{}", fmt::join(scopes_, "."), name),
                                            handle, format_of(scopes_.back(), name)});
  }

  Signals signals;

 private:
  std::vector<std::string> scopes_;
};

/// Values that occur, by format.
class ValueCollector : public RtlValues {
 public:
  explicit ValueCollector(const Signals& signals) {
    for (const auto& [group, list] : signals)
      for (const Signal& signal : list)
        if (signal.format != WaveFormat::Hexadecimal) formats_[signal.handle] = signal.format;
  }

  std::vector<std::uint32_t> handles() const {
    std::vector<std::uint32_t> list;
    for (const auto& [handle, format] : formats_) list.push_back(handle);
    return list;
  }
  void value(std::uint32_t handle, std::string_view bits) override {
    if (bits.find_first_not_of("01") != std::string_view::npos) return;  // before the first cycle
    values_[formats_.at(handle)].emplace(bits);
  }
  const std::set<std::string, std::less<>>& of(WaveFormat format) { return values_[format]; }

 private:
  std::map<std::uint32_t, WaveFormat> formats_;
  std::map<WaveFormat, std::set<std::string, std::less<>>> values_;
};

std::uint32_t number_of(std::string_view bits) {
  return static_cast<std::uint32_t>(std::bitset<32>(std::string(bits)).to_ulong());
}

/// As GTKWave writes it.
std::string hexadecimal(std::string_view bits) {
  std::string text;
  const std::size_t first = bits.size() % 4 == 0 ? 4 : bits.size() % 4;
  for (std::size_t at = 0; at < bits.size(); at += at == 0 ? first : 4)
    text += fmt::format("{:X}", number_of(bits.substr(at, at == 0 ? first : 4)));
  return text;
}

std::string element_text(std::uint32_t bits, PeKind pe) {
  if (pe == PeKind::Int8) return fmt::format("{}", static_cast<std::int8_t>(bits));
  return fmt::format("{:g}", std::bit_cast<float>(bits << 16));
}

std::string sum_text(std::uint32_t bits, PeKind pe) {
  if (pe == PeKind::Int8) return fmt::format("{}", static_cast<std::int32_t>(bits));
  return fmt::format("{:g}", std::bit_cast<float>(bits));
}

Instruction instruction_of(std::string_view bits) {
  Instruction instruction;
  for (std::size_t i = 0; i < instruction.words.size(); ++i)
    instruction.words[i] = number_of(bits.substr(bits.size() - 32 * (i + 1), 32));
  return instruction;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    throw std::runtime_error(fmt::format("[mmu] cannot write '{}'", path.string()));
}

/// The group's signals, each in its format.
std::string group_text(std::string_view name, const std::vector<Signal>& signals,
                       const fs::path& waves) {
  std::string text = fmt::format("{}-{}\n", kGroupBegin, name);
  for (const Signal& signal : signals) {
    const auto translation = std::ranges::find(kTranslations, signal.format,
                                               [](const auto& entry) { return entry.first; });
    if (translation == kTranslations.end()) {
      text += kHexadecimal;
    } else {
      text += kTranslated;
      text += fmt::format("^{} {}\n", translation - kTranslations.begin() + 1,
                          translation_of(waves, translation->second).string());
    }
    text += signal.name + "\n";
  }
  return text + fmt::format("{}-{}\n", kGroupEnd, name);
}

}  // namespace

WaveFormat format_of(std::string_view instance, std::string_view name) {
  if (width_of(name) < 8) return WaveFormat::Hexadecimal;
  if (instance == "u_pe" && (name.starts_with("shadow_q") || name.starts_with("active_q")))
    return WaveFormat::Weights;
  if ((instance == "u_buffer" || instance == "u_transposer") && name.starts_with("data_"))
    return WaveFormat::Elements;
  for (const auto& [begin, format] : kNamed)
    if (name.starts_with(begin) && (format != WaveFormat::Instruction || width_of(name) == 256))
      return format;
  return WaveFormat::Hexadecimal;
}

std::string wave_text(WaveFormat format, std::string_view bits, PeKind pe) {
  const std::size_t element = pe == PeKind::Bf16 ? 16 : 8;
  if (format == WaveFormat::Instruction && bits.size() == 256)
    return disassemble(instruction_of(bits));
  const std::size_t width = format == WaveFormat::Sums      ? 32
                            : format == WaveFormat::Weights ? element + 1
                                                            : element;
  const bool known = format != WaveFormat::Hexadecimal && format != WaveFormat::Instruction;
  if (!known || bits.size() % width != 0) return hexadecimal(bits);
  std::string text;
  for (std::size_t end = bits.size(); end > 0; end -= width) {
    const std::string_view part = bits.substr(end - width, width);
    if (!text.empty()) text += ' ';
    if (format == WaveFormat::Sums)
      text += sum_text(number_of(part), pe);
    else if (format == WaveFormat::Weights && part.front() == '0')
      text += "off";
    else
      text += element_text(number_of(part.substr(width - element)), pe);
  }
  return text;
}

std::vector<fs::path> view_files(const fs::path& waves) {
  std::vector<fs::path> files{translation_of(waves, "gtkw")};
  if (fst_of(waves) != waves) files.push_back(fst_of(waves));
  for (const auto& [format, ending] : kTranslations) files.push_back(translation_of(waves, ending));
  return files;
}

void write_save_file(const RtlModel& model, const std::string& waves, const std::string& name,
                     PeKind pe) {
  Reader reader;
  const auto require = [&](bool read) {
    if (!read) throw std::runtime_error(fmt::format("[mmu] cannot read waves from '{}'", waves));
  };
  require(model.read_hierarchy(waves.c_str(), reader));
  Signals& signals = reader.signals;
  ValueCollector values(signals);
  require(model.read_values(waves.c_str(), values.handles(), values));
  const fs::path path = fs::absolute(name.empty() ? waves : name);
  for (const auto& [format, ending] : kTranslations) {
    std::string text;
    for (const std::string& bits : values.of(format))
      text += fmt::format("{} {}\n", hexadecimal(bits), wave_text(format, bits, pe));
    write_file(translation_of(waves, ending), text);
  }
  std::string text = fmt::format("[dumpfile] \"{}\"\n{}[timestart] 0\n", path.string(), kZoom);
  text += group_text("Machine", signals[""], path);
  for (const Group& group : kGroups) text += group_text(group.name, signals[group.name], path);
  write_file(translation_of(waves, "gtkw"), text);
}

}  // namespace triptych::mmu
