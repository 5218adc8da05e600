// SPDX-License-Identifier: Apache-2.0
#include "systolic/web/cxxrtl_model.h"

#include <backends/cxxrtl/cxxrtl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/save_file.h"
#include "systolic/web/models.h"

namespace triptych::mmu {
namespace {

constexpr std::size_t kWidest = 1024;  ///< bytes of a port: 256 columns of 32 bits

/// Registers of systolic/rtl/mmu_pe.sv, in the order of RtlCell.
constexpr std::array kRegisterNames{"act_q", "active_q", "shadow_q", "weight_q", "psum_q"};

/// Memory of the ports. The harness has references to it.
struct PortMemory {
  std::uint8_t clk_i = 0, rst_ni = 0, start_i = 0, weight_scheme_i = 0, status_o = 0;
  std::uint8_t instruction_valid_i = 0, instruction_ready_o = 0;
  std::array<std::byte, 32> instruction_i{};
  std::uint8_t load_request_o = 0, load_ready_i = 0, load_valid_i = 0;
  std::uint8_t weights_request_o = 0, weights_ready_i = 0, weights_valid_i = 0;
  std::uint8_t store_request_o = 0, store_ready_i = 0;
  std::uint8_t operand_request_o = 0, operand_ready_i = 0, operand_valid_i = 0;
  std::uint32_t load_address_o = 0, weights_address_o = 0;
  std::uint32_t store_address_o = 0, operand_address_o = 0;
  std::uint16_t load_bytes_o = 0, weights_bytes_o = 0, store_bytes_o = 0, operand_bytes_o = 0;
  std::array<std::byte, kWidest> load_data_i{}, weights_data_i{}, store_data_o{}, operand_data_i{};
  std::uint8_t trace_start_o = 0, trace_end_o = 0, counter_i = 0;
  std::uint64_t counter_o = 0;
};

RtlPorts ports_of(PortMemory& p) {
  return {.clk_i = p.clk_i,
          .rst_ni = p.rst_ni,
          .start_i = p.start_i,
          .weight_scheme_i = p.weight_scheme_i,
          .status_o = p.status_o,
          .instruction_valid_i = p.instruction_valid_i,
          .instruction_i = p.instruction_i[0],
          .instruction_ready_o = p.instruction_ready_o,
          .load_request_o = p.load_request_o,
          .load_address_o = p.load_address_o,
          .load_bytes_o = p.load_bytes_o,
          .load_ready_i = p.load_ready_i,
          .load_valid_i = p.load_valid_i,
          .load_data_i = p.load_data_i[0],
          .weights_request_o = p.weights_request_o,
          .weights_address_o = p.weights_address_o,
          .weights_bytes_o = p.weights_bytes_o,
          .weights_ready_i = p.weights_ready_i,
          .weights_valid_i = p.weights_valid_i,
          .weights_data_i = p.weights_data_i[0],
          .store_request_o = p.store_request_o,
          .store_address_o = p.store_address_o,
          .store_bytes_o = p.store_bytes_o,
          .store_data_o = p.store_data_o[0],
          .store_ready_i = p.store_ready_i,
          .operand_request_o = p.operand_request_o,
          .operand_address_o = p.operand_address_o,
          .operand_bytes_o = p.operand_bytes_o,
          .operand_ready_i = p.operand_ready_i,
          .operand_valid_i = p.operand_valid_i,
          .operand_data_i = p.operand_data_i[0],
          .trace_start_o = p.trace_start_o,
          .trace_end_o = p.trace_end_o,
          .counter_i = p.counter_i,
          .counter_o = p.counter_o};
}

/// visit(name, first byte, bytes) of every port.
template <class Visit>
void visit_ports(PortMemory& p, Visit visit) {
  const auto port = [&](const char* name, auto& memory) {
    visit(name, reinterpret_cast<std::byte*>(&memory), sizeof memory);
  };
  port("clk_i", p.clk_i);
  port("rst_ni", p.rst_ni);
  port("start_i", p.start_i);
  port("weight_scheme_i", p.weight_scheme_i);
  port("status_o", p.status_o);
  port("instruction_valid_i", p.instruction_valid_i);
  port("instruction_i", p.instruction_i);
  port("instruction_ready_o", p.instruction_ready_o);
  port("load_request_o", p.load_request_o);
  port("load_address_o", p.load_address_o);
  port("load_bytes_o", p.load_bytes_o);
  port("load_ready_i", p.load_ready_i);
  port("load_valid_i", p.load_valid_i);
  port("load_data_i", p.load_data_i);
  port("weights_request_o", p.weights_request_o);
  port("weights_address_o", p.weights_address_o);
  port("weights_bytes_o", p.weights_bytes_o);
  port("weights_ready_i", p.weights_ready_i);
  port("weights_valid_i", p.weights_valid_i);
  port("weights_data_i", p.weights_data_i);
  port("store_request_o", p.store_request_o);
  port("store_address_o", p.store_address_o);
  port("store_bytes_o", p.store_bytes_o);
  port("store_data_o", p.store_data_o);
  port("store_ready_i", p.store_ready_i);
  port("operand_request_o", p.operand_request_o);
  port("operand_address_o", p.operand_address_o);
  port("operand_bytes_o", p.operand_bytes_o);
  port("operand_ready_i", p.operand_ready_i);
  port("operand_valid_i", p.operand_valid_i);
  port("operand_data_i", p.operand_data_i);
  port("trace_start_o", p.trace_start_o);
  port("trace_end_o", p.trace_end_o);
  port("counter_i", p.counter_i);
  port("counter_o", p.counter_o);
}

/// Items by their names in the RTL. Yosys puts an `else if` of generate blocks into scopes of its
/// own, "genblk1.".
decltype(cxxrtl::debug_items::table) by_rtl_name(const cxxrtl::debug_items& items) {
  constexpr std::string_view scope = "genblk";
  decltype(cxxrtl::debug_items::table) named;
  for (const auto& [path, parts] : items.table) {
    std::string name = path;
    for (std::size_t at = 0; (at = name.find(scope, at)) != name.npos;)
      name.erase(at, name.find('.', at) + 1 - at);
    named.emplace(std::move(name), parts);
  }
  return named;
}

/// A port and the chunks of it in the design.
struct Wire {
  std::byte* memory = nullptr;
  std::uint32_t* chunks = nullptr;
  std::size_t bytes = 0;
};

/// Members of a CxxrtlModel. A base of it, since its ports lie in here.
struct CxxrtlParts {
  PortMemory memory;
  std::unique_ptr<cxxrtl::module> design;
  cxxrtl::debug_items items;
};

class CxxrtlModel : private CxxrtlParts, public RtlModel {
 public:
  CxxrtlModel(std::unique_ptr<cxxrtl::module> made, const MachineConfig& machine,
              std::shared_ptr<std::vector<RecordedSignal>> signals, std::uint64_t limit)
      : RtlModel(ports_of(memory)), signals_(std::move(signals)), limit_(limit) {
    design = std::move(made);
    design->debug_info(items);
    items.table = by_rtl_name(items);
    visit_ports(memory, [&](const char* name, std::byte* at, std::size_t bytes) {
      const cxxrtl::debug_item& item = find(name);
      bytes = std::min(bytes, (item.width + 7) / 8);
      auto& wires = (item.flags & cxxrtl::debug_item::INPUT) != 0 ? inputs_ : outputs_;
      wires.push_back({at, item.curr, bytes});
    });
    find_registers(machine);
    find_signals();
  }

  /// Yosys has no $value$plusargs, and the pages' modules ask for none.
  void plusargs(std::span<const char* const> /*arguments*/) override {}
  void eval() override {
    for (const Wire& wire : inputs_) std::memcpy(wire.chunks, wire.memory, wire.bytes);
    design->step();
    for (const Wire& wire : outputs_) std::memcpy(wire.memory, wire.chunks, wire.bytes);
    if (clk_i == 0) write_down();
  }
  std::unique_ptr<RtlWaves> open_waves(const char*) override { return nullptr; }
  bool read_hierarchy(const char*, RtlHierarchy&) const override { return false; }
  bool read_values(const char*, std::span<const std::uint32_t>, RtlValues&) const override {
    return false;
  }
  void read_buffer(std::uint16_t*) const override { refuse(); }
  void read_accumulators(std::uint32_t*) const override { refuse(); }
  bool read_cells(RtlCell* cells) const override {
    for (const Registers& registers : registers_) {
      const auto [activation, weight, waiting, passing, sum] = registers;
      *cells++ = {.activation = static_cast<std::uint16_t>(*activation),
                  .weight = *weight,
                  .waiting = *waiting,
                  .passing = *passing,
                  .sum = *sum};
    }
    return true;
  }

 private:
  using Registers = std::array<const std::uint32_t*, kRegisterNames.size()>;

  [[noreturn]] static void refuse() {
    throw std::runtime_error("[mmu] this model of the RTL does not show its memories");
  }

  const cxxrtl::debug_item& find(const std::string& name) const {
    const auto found = items.table.find(name);
    if (found == items.table.end() || found->second.size() != 1)
      throw std::runtime_error(fmt::format("[mmu] the compiled RTL has no signal \"{}\"", name));
    return found->second[0];
  }

  void find_registers(const MachineConfig& machine) {
    for (std::uint32_t r = 0; r < machine.rows; ++r)
      for (std::uint32_t c = 0; c < machine.columns; ++c) {
        Registers& registers = registers_.emplace_back();
        for (std::size_t i = 0; i < registers.size(); ++i)
          registers[i] =
              find(fmt::format("u_datapath gen_grid.u_array gen_row[{}].gen_column[{}].u_pe {}", r,
                               c, kRegisterNames[i]))
                  .curr;
      }
  }

  void find_signals() {
    for (const auto& [name, parts] : items.table) {
      const bool ours = name.find(' ') == std::string::npos && parts.size() == 1;
      if (!ours || parts[0].width > 32 || parts[0].curr == nullptr || parts[0].depth != 1) continue;
      if (name == "clk_i" || name.starts_with("counter_")) continue;
      signals_->push_back({name, parts[0].width, {}});
      wires_.push_back(parts[0].curr);
    }
  }

  /// Once per cycle, when its signals have settled. A program begins with start_i.
  void write_down() {
    if (start_i != 0) {
      cycles_ = 0;
      for (RecordedSignal& signal : *signals_) signal.values.clear();
      return;
    }
    if (rst_ni == 0 || cycles_ >= limit_) return;
    ++cycles_;
    for (std::size_t i = 0; i < wires_.size(); ++i) (*signals_)[i].values.push_back(*wires_[i]);
  }

  std::shared_ptr<std::vector<RecordedSignal>> signals_;
  std::uint64_t limit_, cycles_ = 0;
  std::vector<Wire> inputs_, outputs_;
  std::vector<Registers> registers_;  ///< of each PE
  std::vector<const std::uint32_t*> wires_;
};

bool same_rtl(const MachineConfig& a, const MachineConfig& b) {
  return a.rows == b.rows && a.columns == b.columns && a.pe == b.pe &&
         a.pe_latency == b.pe_latency && a.buffer_rows == b.buffer_rows &&
         a.accumulator_rows == b.accumulator_rows && a.weight_tiles == b.weight_tiles &&
         a.queue_depth == b.queue_depth && a.has_output_stationary() == b.has_output_stationary();
}

}  // namespace

RecordedMachine open_recorded_rtl(const MachineConfig& machine, std::uint64_t limit) {
  std::vector<std::string_view> names;
  for (const CompiledModel& model : compiled_models()) {
    names.push_back(model.machine);
    if (!same_rtl(machine, find_machine(model.machine))) continue;
    auto signals = std::make_shared<std::vector<RecordedSignal>>();
    auto rtl = std::make_unique<CxxrtlModel>(model.make(), machine, signals, limit);
    return {make_rtl_machine(std::move(rtl), machine), signals};
  }
  throw std::runtime_error(fmt::format("[mmu] no RTL of machine '{}' was compiled in; there are {}",
                                       machine.name, fmt::join(names, ", ")));
}

}  // namespace triptych::mmu
