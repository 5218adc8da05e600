// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/own_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <regex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "systolic/isa/machine_files.h"
#include "systolic/sim/built_in.h"
#include "systolic/sim/folder.h"

namespace triptych::mmu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRtlFolder = "systolic/rtl/";

std::string_view file_name(const SourceFile& source) {
  return source.path.substr(kRtlFolder.size());
}

bool is_module(const SourceFile& source) {
  return source.path.starts_with(kRtlFolder) && source.path.ends_with(".sv");
}

/// Text that Verilator would read as SystemVerilog, or somebody would think so.
bool looks_like_rtl(const fs::path& file) {
  const std::string extension = file.extension().string();
  return std::ranges::count(std::array{".sv", ".v", ".svh", ".vh", ".vlt", ".SV", ".V"},
                            extension) > 0;
}

std::string read(const fs::path& path) {
  auto text = read_text_file(path);
  if (!text) throw std::invalid_argument(fmt::format("[rtl] there is no \"{}\"", path.string()));
  return std::move(*text);
}

/// Names of the modules and packages that a text declares.
std::vector<std::string> declared(const std::string& text) {
  static const std::regex comment("//[^\\n]*|/\\*[^]*?\\*/");
  static const std::regex declaration("\\b(?:module|package)\\s+([A-Za-z_]\\w*)");
  const std::string code = std::regex_replace(text, comment, " ");
  std::vector<std::string> names;
  for (std::sregex_iterator match(code.begin(), code.end(), declaration), end; match != end;
       ++match)
    names.push_back((*match)[1]);
  return names;
}

void check_file(const fs::path& path, const std::string& content) {
  const auto known = module_files();
  const std::string name = path.filename().string();
  if (std::ranges::count(known, name) == 0)
    throw std::invalid_argument(fmt::format(
        "[rtl] \"{}\": no module of the machine is called so; a file takes the place of one of {}",
        path.string(), fmt::join(known, ", ")));
  const auto names = declared(content);
  if (std::ranges::count(names, path.stem().string()) == 0)
    throw std::invalid_argument(fmt::format(
        "[rtl] \"{}\" declares {}, not {}; the module keeps its name and its ports", path.string(),
        names.empty() ? "no module" : fmt::format("{}", fmt::join(names, ", ")),
        path.stem().string()));
}

/// File names and contents of a folder.
std::map<std::string, std::string> read_folder(const std::string& folder) {
  if (!fs::is_directory(folder))
    throw std::invalid_argument(
        fmt::format("[rtl] \"{}\" is no folder; give the one with your modules", folder));
  std::map<std::string, std::string> files;
  std::error_code error;
  for (const auto& name : names_in(folder, error)) {
    const auto path = fs::path(folder) / name;
    if (!looks_like_rtl(path)) continue;
    std::string content = read(path);
    check_file(path, content);
    files[name] = std::move(content);
  }
  if (error) throw std::system_error(error, fmt::format("[rtl] cannot list \"{}\"", folder));
  if (files.empty())
    throw std::invalid_argument(
        fmt::format("[rtl] \"{}\" has no module (mmu_*.sv); copy one of ours into it "
                    "(triptych machine rtl) and change it",
                    folder));
  return files;
}

/// Files that not every machine has: of one of the arrays, or of PEs of one cycle or of several.
struct PartOfSome {
  std::string_view file;
  std::optional<ArrayKind> array = std::nullopt;
  std::optional<bool> several_cycles = std::nullopt;
};
constexpr std::array kPartsOfSome{PartOfSome{"mmu_accumulators.sv", ArrayKind::Fast},
                                  PartOfSome{"mmu_array.sv", ArrayKind::Fast},
                                  PartOfSome{"mmu_buffer.sv", ArrayKind::Fast},
                                  PartOfSome{"mmu_weight_fifo.sv", ArrayKind::Fast},
                                  PartOfSome{"mmu_accumulators_banks.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_array_grid.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_buffer_banks.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_lane.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_pe.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_sram_2r1w.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_weight_fifo_banks.sv", ArrayKind::Grid},
                                  PartOfSome{"mmu_output.sv", std::nullopt, false},
                                  PartOfSome{"mmu_output_column.sv", std::nullopt, true},
                                  PartOfSome{"mmu_output_stages.sv", std::nullopt, true},
                                  PartOfSome{"mmu_stages_pkg.sv", std::nullopt, true}};

PartOfSome part_of(std::string_view file) {
  const auto* const found = std::ranges::find(kPartsOfSome, file, &PartOfSome::file);
  return found == kPartsOfSome.end() ? PartOfSome{file} : *found;
}

/// A changed module that the machine has not would change nothing, and nobody would know.
void check_latency(const MachineConfig& machine, const RtlSource& source) {
  const auto several = part_of(source.name).several_cycles;
  if (!several || *several == (machine.pe_latency > 1) ||
      source.content == module_text(source.name))
    return;
  throw std::invalid_argument(fmt::format(
      "[rtl] {} is part of machines whose pe_latency is {}; that of '{}' is {}, so that its RTL "
      "would not have this module at all",
      source.path, *several ? "2 or 3" : "1", machine.name, machine.pe_latency));
}

}  // namespace

std::vector<RtlSource> rtl_sources(const MachineConfig& machine) {
  const auto own =
      machine.rtl.empty() ? std::map<std::string, std::string>() : read_folder(machine.rtl);
  std::vector<RtlSource> sources;
  for (const SourceFile& source : model_sources()) {
    if (!source.path.starts_with(kRtlFolder)) continue;
    const std::string name(file_name(source));
    const auto mine = own.find(name);
    if (mine == own.end())
      sources.push_back({name, std::string(source.content), std::string(source.path), false});
    else
      sources.push_back(
          {name, mine->second, (fs::path(machine.rtl) / name).lexically_normal().string(), true});
  }
  return sources;
}

std::optional<ArrayKind> array_of_own_modules(const MachineConfig& machine) {
  std::optional<ArrayKind> array;
  std::string of;
  for (const RtlSource& source : rtl_sources(machine)) {
    if (!source.own) continue;
    check_latency(machine, source);
    const auto own = part_of(source.name).array;
    if (!own) continue;
    if (array && *array != *own)
      throw std::invalid_argument(fmt::format(
          "[rtl] {} is part of the {} array and {} of the {} array: a machine has one of them", of,
          to_string(*array), source.path, to_string(*own)));
    array = own;
    of = source.path;
  }
  if (array && machine.array && *machine.array != *array)
    throw std::invalid_argument(
        fmt::format("[rtl] {} is part of the {} array, but the machine is to have the {} one: "
                    "leave the array out, or say {}",
                    of, to_string(*array), to_string(*machine.array), to_string(*array)));
  return array;
}

std::string own_module_names(const MachineConfig& machine) {
  std::vector<std::string> names;
  for (const RtlSource& source : rtl_sources(machine))
    if (source.own) names.push_back(source.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string_view> module_files() {
  std::vector<std::string_view> names;
  for (const SourceFile& source : model_sources())
    if (is_module(source)) names.push_back(file_name(source));
  return names;
}

std::string_view module_text(std::string_view file) {
  for (const SourceFile& source : model_sources())
    if (is_module(source) && file_name(source) == file) return source.content;
  throw std::invalid_argument(
      fmt::format("[rtl] no module '{}'; there are {}", file, fmt::join(module_files(), ", ")));
}

}  // namespace triptych::mmu
