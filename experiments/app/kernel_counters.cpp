// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/kernel_counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "core/base/console.h"
#include "core/base/mapped.h"
#include "core/runtime/counter_fields.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

constexpr double kSectorBytes = 32;

/// A line of source and how it touches memory. Two accesses of one kind in a line count together.
using LineKey = std::tuple<std::string, unsigned, MemorySpace, MemoryAccess>;

std::map<LineKey, AccessCounters> by_line(const KernelCounters& counters) {
  std::map<LineKey, AccessCounters> lines;
  for (const auto& [site, at] : counters.sites) {
    lines[{site.file, site.line, site.space, site.access}] += at;
  }
  return lines;
}

constexpr MemoryAccess kAccesses[] = {MemoryAccess::Load, MemoryAccess::Store,
                                      MemoryAccess::Atomic};

/// Accesses of all kinds together.
AccessCounters total(const KernelCounters& counters, MemorySpace space) {
  AccessCounters sum;
  for (const auto access : kAccesses) sum += counters.total(space, access);
  return sum;
}

using PassLine = std::pair<std::string, unsigned>;

std::map<PassLine, PassCounters> passes_by_line(const KernelCounters& counters) {
  std::map<PassLine, PassCounters> lines;
  for (const auto& [site, at] : counters.passes) {
    auto& sum = lines[{site.file, site.line}];
    sum.warps += at.warps;
    sum.lanes += at.lanes;
    sum.divergent += at.divergent;
  }
  return lines;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// a / b. "-" where nothing was counted.
std::string per(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? "-" : fmt::format("{:.2f}", ratio(a, b));
}

/// Share of the bytes that some lane asked for in the sectors that were moved.
double useful_share(const AccessCounters& at) {
  return static_cast<double>(at.distinct_bytes) / (kSectorBytes * static_cast<double>(at.sectors));
}

std::string_view to_string(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::Registers:
      return "registers";
    case OccupancyLimit::SharedMemory:
      return "shared memory";
    case OccupancyLimit::Threads:
      return "threads";
    default:
      return "blocks";
  }
}

std::vector<std::string_view> names(const std::vector<OccupancyLimit>& limits) {
  return mapped<std::string_view>(limits, [](const auto limit) { return to_string(limit); });
}

page::Json occupancy_json(const KernelCounters& counters) {
  page::Json list = page::Json::array();
  for (const auto& [capability, at] : counters.occupancy) {
    list.push_back({{"compute_capability", capability},
                    {"registers", at.registers == 0 ? page::Json() : page::Json(at.registers)},
                    {"blocks", at.blocks},
                    {"warps", at.warps},
                    {"max_warps", at.max_warps},
                    {"limits", names(at.limits)},
                    {"kind", "modelled"}});
  }
  return list;
}

/// Cells of the table: registers / thread, occupancy, limited by.
std::array<std::string, 3> occupancy_cells(const KernelCounters& counters,
                                           std::string_view capability) {
  const auto found = counters.occupancy.find(std::string(capability));
  if (found == counters.occupancy.end()) return {"-", "-", "-"};
  const auto& at = found->second;
  return {at.registers == 0 ? "unknown" : fmt::format("{}", at.registers),
          fmt::format("{}{}/{}", at.registers == 0 ? "at most " : "", at.warps, at.max_warps),
          fmt::format("{}", fmt::join(names(at.limits), ", "))};
}

std::string useful_text(const AccessCounters& at) {
  return at.sectors == 0 ? "-" : fmt::format("{:.1f}", 100 * useful_share(at));
}

page::Json access_json(MemorySpace space, const AccessCounters& at) {
  page::Json json;
  visit_accesses(at, space, [&](const char* name, auto count) { json[name] = count; });
  return json;
}

page::Json kernel_json(const std::string& name, const KernelCounters& counters, bool lines) {
  page::Json json = {{"kernel", name}};
  visit_launches(counters, [&](const char* field, auto count) { json[field] = count; });
  json["occupancy"] = occupancy_json(counters);
  for (const auto space : {MemorySpace::Global, MemorySpace::Shared}) {
    for (const auto access : kAccesses) {
      json[std::string(to_string(space))][std::string(to_string(access))] =
          access_json(space, counters.total(space, access));
    }
  }
  if (!lines) return json;
  json["lines"] = page::Json::array();
  for (const auto& [key, at] : by_line(counters)) {
    const auto& [file, line, space, access] = key;
    page::Json entry = {
        {"file", file}, {"line", line}, {"space", to_string(space)}, {"access", to_string(access)}};
    entry.update(access_json(space, at));
    json["lines"].push_back(std::move(entry));
  }
  json["passes"] = page::Json::array();
  for (const auto& [line, at] : passes_by_line(counters)) {
    auto pass = divergence_json(line.first, line.second, at.warps, at.divergent);
    pass["lanes"] = at.lanes;
    json["passes"].push_back(std::move(pass));
  }
  return json;
}

/// Lines of the kernels' sources, where this computer has them.
class SourceText {
 public:
  std::string line(const std::string& file, unsigned number) {
    auto found = files_.find(file);
    if (found == files_.end()) found = files_.emplace(file, read(file)).first;
    if (number == 0 || number > found->second.size()) return "";
    const auto& text = found->second[number - 1];
    const auto first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first);
  }

 private:
  static std::vector<std::string> read(const std::string& file) {
    std::ifstream stream(std::filesystem::path(TRIPTYCH_SOURCE_DIR) / file);
    if (!stream) stream.open(file);  // also where a confined user may not enter the folder above
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  std::map<std::string, std::vector<std::string>> files_;
};

void print_lines_of(const std::string& problem, const std::string& kernel,
                    const KernelCounters& counters, SourceText& source) {
  print_text("\n{}, {}, by line of its source:\n", problem, kernel);
  page::TextTable table({"line", "access", "requests", "sectors or wavefronts / request",
                         "useful %", "lanes / request", "source"});
  for (const auto& [key, at] : by_line(counters)) {
    const auto& [file, line, space, access] = key;
    const bool global = space == MemorySpace::Global;
    table.add(
        {fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line),
         fmt::format("{} {}", to_string(space), to_string(access)), fmt::format("{}", at.requests),
         per(global ? at.sectors : at.wavefronts, at.requests), global ? useful_text(at) : "-",
         per(at.lanes, at.requests), source.line(file, line)});
  }
  table.print();
}

}  // namespace

page::Json to_json(const KernelCounterTable& kernels, bool by_line) {
  page::Json list = page::Json::array();
  for (const auto& [name, counters] : kernels) {
    list.push_back(kernel_json(name, counters, by_line));
  }
  return list;
}

page::Json divergence_json(const std::string& file, unsigned line, std::uint64_t warps,
                           std::uint64_t divergent) {
  return {{"file", file}, {"line", line}, {"warps", warps}, {"divergent_warps", divergent}};
}

page::Json place_json(const FaultPlace& place) {
  const auto index = [](const FaultPlace::Index& at) { return page::Json{at.x, at.y, at.z}; };
  return {{"file", place.file},
          {"line", place.line},
          {"block", index(place.block)},
          {"thread", index(place.thread)}};
}

void print_counters(const std::vector<CountedRun>& runs, std::string_view capability) {
  page::TextTable table({"name", "kernel", "global requests", "sectors / request", "useful %",
                         "shared requests", "wavefronts / request", "lanes / request", "barriers",
                         "threads / block", "shared memory", "registers / thread", "occupancy",
                         "limited by"});
  for (const auto& run : runs) {
    for (const auto& [name, counters] : run.kernels) {
      const auto global = total(counters, MemorySpace::Global);
      const auto shared = total(counters, MemorySpace::Shared);
      const auto occupancy = occupancy_cells(counters, capability);
      table.add({run.name, name, fmt::format("{}", global.requests),
                 per(global.sectors, global.requests), useful_text(global),
                 fmt::format("{}", shared.requests), per(shared.wavefronts, shared.requests),
                 per(global.lanes + shared.lanes, global.requests + shared.requests),
                 fmt::format("{}", counters.barriers), fmt::format("{}", counters.block_threads),
                 page::format_bytes(static_cast<double>(counters.shared_bytes)), occupancy[0],
                 occupancy[1], occupancy[2]});
    }
  }
  table.print();
  print_text("occupancy: warps that a multiprocessor of compute capability {} holds (modelled)\n",
             capability);
}

void print_traffic(const std::vector<CountedRun>& runs) {
  page::TextTable table({"name", "kernels", "launches", "loaded", "stored", "global memory moved"});
  for (const auto& run : runs) {
    KernelCounters all;
    std::vector<std::string_view> kernels;
    for (const auto& [name, counters] : run.kernels) {
      kernels.emplace_back(name);
      all += counters;
    }
    const auto moved = [&](MemoryAccess access) {
      return kSectorBytes * static_cast<double>(all.total(MemorySpace::Global, access).sectors);
    };
    // Bytes that the copy engine brings are loaded as well.
    const double loaded = moved(MemoryAccess::Load) + static_cast<double>(all.bulk_bytes);
    const double stored = moved(MemoryAccess::Store) + moved(MemoryAccess::Atomic);
    table.add({run.name, fmt::format("{}", fmt::join(kernels, ", ")),
               fmt::format("{}", all.launches), page::format_bytes(loaded),
               page::format_bytes(stored), page::format_bytes(loaded + stored)});
  }
  print_text("\nglobal memory, in whole sectors of 32 bytes:\n");
  table.print();
}

void print_lines(const std::vector<CountedRun>& runs) {
  SourceText source;
  for (const auto& run : runs) {
    for (const auto& [name, counters] : run.kernels) {
      print_lines_of(run.name, name, counters, source);
    }
  }
}

void print_passes(const std::vector<CountedRun>& runs) {
  SourceText source;
  for (const auto& run : runs) {
    for (const auto& [name, counters] : run.kernels) {
      page::TextTable table({"line", "warps", "of them divergent", "lanes / warp", "source"});
      bool any = false;
      for (const auto& [line, at] : passes_by_line(counters)) {
        if (at.divergent == 0) continue;
        any = true;
        const auto file = std::filesystem::path(line.first).filename().string();
        table.add({fmt::format("{}:{}", file, line.second), fmt::format("{}", at.warps),
                   fmt::format("{}", at.divergent), per(at.lanes, at.warps),
                   source.line(line.first, line.second)});
      }
      if (counters.passes.empty()) continue;
      print_text("\n{}, {}, where its warps diverge:{}\n", run.name, name, any ? "" : " nowhere");
      if (any) table.print();
    }
  }
}

std::string line_of_source(const std::string& file, unsigned line) {
  return SourceText().line(file, line);
}

}  // namespace triptych::app
