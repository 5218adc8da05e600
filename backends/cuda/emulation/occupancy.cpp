// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/occupancy.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "core/base/list_text.h"

namespace triptych::cuda::emulation {
namespace {

constexpr int kLanes = 32;
constexpr int kMaxThreads = 1024;  // of a block
constexpr int kKiB = 1024;
constexpr int kRegisters = 65536;      // of a multiprocessor, and at most of a block
constexpr int kQuarters = 4;           // of a multiprocessor, each with a quarter of its registers
constexpr int kRegisterGranule = 256;  // the unit of register allocation for a warp
constexpr int kMaxRegisters = 255;     // of a thread
constexpr int kUnlimited = std::numeric_limits<int>::max();

int ceil_div(int a, int b) { return (a + b - 1) / b; }
int round_up(int a, int b) { return ceil_div(a, b) * b; }

int blocks_by_threads(const Multiprocessor& on, const BlockDemand& block) {
  if (block.threads > kMaxThreads) return 0;
  return on.max_warps / ceil_div(block.threads, kLanes);
}

int blocks_by_registers(const BlockDemand& block) {
  if (block.registers > kMaxRegisters) return 0;
  const int warps = ceil_div(block.threads, kLanes);
  const int of_warp = round_up(block.registers * kLanes, kRegisterGranule);
  if (of_warp == 0) return kUnlimited;
  // A launch is checked as if its warps filled all quarters equally.
  if (of_warp * round_up(warps, kQuarters) > kRegisters) return 0;
  return kRegisters / kQuarters / of_warp * kQuarters / warps;
}

int blocks_by_shared_memory(const Multiprocessor& on, const BlockDemand& block) {
  const auto most = static_cast<std::size_t>(on.block_shared_bytes);
  if (block.shared_bytes > most) return 0;
  const int of_block =
      round_up(static_cast<int>(block.shared_bytes) + on.reserved_bytes, on.granule_bytes);
  return of_block == 0 ? kUnlimited : on.shared_bytes / of_block;
}

/// "90a" is the code for multiprocessors of 9.0.
std::string capability_of(std::string_view architecture) {
  while (!architecture.empty() && architecture.back() > '9') architecture.remove_suffix(1);
  const auto minor = architecture.size() - 1;
  return fmt::format("{}.{}", architecture.substr(0, minor), architecture.substr(minor));
}

using RegistersByCapability = std::map<std::string, int>;

/// Rows are "instance",architecture,registers below a line of names.
std::map<std::string, RegistersByCapability> read_registers(std::string_view table) {
  std::map<std::string, RegistersByCapability> result;
  table.remove_prefix(table.find('\n') + 1);
  for (const auto row : split_lines(table)) {
    const auto last = row.rfind(','), middle = row.rfind(',', last - 1);
    int registers = 0;
    std::from_chars(row.data() + last + 1, row.data() + row.size(), registers);
    const auto architecture = row.substr(middle + 1, last - middle - 1);
    result[std::string(row.substr(1, middle - 2))][capability_of(architecture)] = registers;
  }
  return result;
}

void remove_all(std::string& text, std::string_view part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
}

}  // namespace

const std::vector<Multiprocessor>& multiprocessors() {
  static const std::vector<Multiprocessor> list = {
      {"7.5", 32, 16, 64 * kKiB, 64 * kKiB, 0, 256, 96 * kKiB, 64, 2},
      {"8.0", 64, 32, 164 * kKiB, 163 * kKiB, kKiB, 128, 192 * kKiB, 64, 32},
      {"8.6", 48, 16, 100 * kKiB, 99 * kKiB, kKiB, 128, 128 * kKiB, 128, 2},
      {"8.9", 48, 24, 100 * kKiB, 99 * kKiB, kKiB, 128, 128 * kKiB, 128, 2},
      {"9.0", 64, 32, 228 * kKiB, 227 * kKiB, kKiB, 128, 256 * kKiB, 128, 64},
  };
  return list;
}

Occupancy occupancy(const Multiprocessor& multiprocessor, const BlockDemand& block) {
  const std::pair<OccupancyLimit, int> limits[] = {
      {OccupancyLimit::Registers, blocks_by_registers(block)},
      {OccupancyLimit::SharedMemory, blocks_by_shared_memory(multiprocessor, block)},
      {OccupancyLimit::Threads, blocks_by_threads(multiprocessor, block)},
      {OccupancyLimit::Blocks, multiprocessor.max_blocks}};
  const int blocks = std::ranges::min(limits, {}, &std::pair<OccupancyLimit, int>::second).second;
  Occupancy result = {.registers = block.registers,
                      .blocks = blocks,
                      .warps = blocks * ceil_div(block.threads, kLanes),
                      .max_warps = multiprocessor.max_warps};
  for (const auto& [limit, at_most] : limits) {
    if (at_most == blocks) result.limits.push_back(limit);
  }
  return result;
}

std::map<std::string, Occupancy> occupancy_of(const std::string& instance, int threads,
                                              std::size_t shared_bytes) {
  static const auto table = read_registers(registers_table());
  const auto found = table.find(instance);
  if (found == table.end()) return {};
  std::map<std::string, Occupancy> result;
  for (const auto& multiprocessor : multiprocessors()) {
    const std::string capability(multiprocessor.capability);
    const auto registers = found->second.find(capability);
    if (registers == found->second.end()) continue;
    result[capability] = occupancy(multiprocessor, {threads, registers->second, shared_bytes});
  }
  return result;
}

std::string instance_name(std::string_view pretty_function) {
  const std::string_view mark = "kKernel = ";
  const auto begin = pretty_function.find(mark) + mark.size();
  std::string name(pretty_function.substr(begin, pretty_function.rfind(']') - begin));
  for (const char* part : {"{anonymous}::", "(anonymous namespace)::", "triptych::", "cuda::",
                           "emulated::", "counted::", " ", "&"}) {
    remove_all(name, part);
  }
  return name;
}

}  // namespace triptych::cuda::emulation
