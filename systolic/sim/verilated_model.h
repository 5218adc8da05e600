// Verilator's class of one machine as an RtlModel. Compiled once per machine. Ports have the same
// names in all of them and differ only in width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtkwave/fstapi.h>
#include <verilated.h>
#include <verilated_fst_c.h>
#include <verilated_sym_props.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "systolic/sim/rtl_model.h"

namespace triptych::mmu {

class VerilatedWaves : public RtlWaves {
 public:
  VerilatedFstC& file() { return file_; }
  ~VerilatedWaves() override { file_.close(); }
  void dump(std::uint64_t time) override { file_.dump(time); }

 private:
  VerilatedFstC file_;
};

/// The memories of all banks of a kind, of an RTL that has a memory per bank: bank i is
/// mmu_top.<array>[i].<memory>, an mmu_sram_1r1w.
class VerilatedBanks {
 public:
  VerilatedBanks(const VerilatedContext& context, const std::string& array,
                 const std::string& memory) {
    const auto find = [&](std::size_t i) {
      std::string path("TOP.mmu_top.");
      path.append(array).append("[").append(std::to_string(i)).append("].").append(memory);
      return context.scopeFind(path.c_str());
    };
    while (const VerilatedScope* bank = find(banks_.size()))
      banks_.push_back(bank->varFind("memory_q"));
  }

  /// Row by row.
  template <class Value>
  void copy(Value* values) const {
    if (banks_.empty()) throw std::logic_error("[mmu] the RTL has no memory of this name");
    const auto rows = static_cast<std::size_t>(banks_[0]->elements(1));
    for (std::size_t row = 0; row < rows; ++row)
      for (const VerilatedVar* bank : banks_) *values++ = static_cast<Value>(word(*bank, row));
  }

 private:
  static std::uint32_t word(const VerilatedVar& memory, std::size_t row) {
    if (memory.vltype() == VLVT_UINT8) return static_cast<const CData*>(memory.datap())[row];
    if (memory.vltype() == VLVT_UINT16) return static_cast<const SData*>(memory.datap())[row];
    return static_cast<const IData*>(memory.datap())[row];
  }

  std::vector<const VerilatedVar*> banks_;
};

/// Members of a VerilatedModel. A base of it, since its ports lie in here.
template <class Model>
struct VerilatedParts {
  VerilatedContext context;
  Model model{prepare(context)};
  VerilatedBanks buffer{context, "u_datapath.gen_banks_buffer.u_buffer.gen_lane", "u_bank"};
  VerilatedBanks accumulators{context, "u_datapath.gen_banks_sums.u_accumulators.gen_bank",
                              "u_bank.u_a"};

  static VerilatedContext* prepare(VerilatedContext& context) {
    context.traceEverOn(true);
    context.assertOn(true);
    return &context;
  }
};

/// Model is Verilator's class of the machine.
template <class Model>
class VerilatedModel : private VerilatedParts<Model>, public RtlModel {
 public:
  VerilatedModel() : RtlModel(ports_of(this->model)) {}
  ~VerilatedModel() override {
    // The model's scopes leave the context of this thread, which is that of the model made last.
    Verilated::threadContextp(&this->context);
    this->model.final();
  }

  void plusargs(std::span<const char* const> arguments) override {
    std::vector<std::string> words;
    words.reserve(arguments.size());
    for (const char* argument : arguments) words.push_back(std::string("+") + argument);
    std::vector<const char*> pointers = {"model"};  // the place of a program's name
    for (const std::string& word : words) pointers.push_back(word.c_str());
    this->context.commandArgs(static_cast<int>(pointers.size()), pointers.data());
  }
  void eval() override { this->model.eval(); }
  std::unique_ptr<RtlWaves> open_waves(const char* path) override {
    auto waves = std::make_unique<VerilatedWaves>();
    this->model.trace(&waves->file(), 99);
    waves->file().open(path);
    if (!waves->file().isOpen()) return nullptr;
    return waves;
  }
  bool read_hierarchy(const char* path, RtlHierarchy& hierarchy) const override {
    const auto reader = open_reader(path);
    if (!reader) return false;
    while (const fstHier* entry = fstReaderIterateHier(reader.get())) {
      if (entry->htyp == FST_HT_SCOPE) {
        hierarchy.enter({entry->u.scope.name, entry->u.scope.name_length});
      } else if (entry->htyp == FST_HT_UPSCOPE) {
        hierarchy.leave();
      } else if (entry->htyp == FST_HT_VAR && entry->u.var.typ != FST_VT_VCD_PARAMETER &&
                 entry->u.var.typ != FST_VT_VCD_INTEGER) {
        hierarchy.signal({entry->u.var.name, entry->u.var.name_length}, entry->u.var.handle);
      }
    }
    return true;
  }
  bool read_values(const char* path, std::span<const std::uint32_t> handles,
                   RtlValues& values) const override {
    const auto reader = open_reader(path);
    if (!reader) return false;
    fstReaderClrFacProcessMaskAll(reader.get());
    for (const std::uint32_t handle : handles) fstReaderSetFacProcessMask(reader.get(), handle);
    const auto tell = [](void* told, std::uint64_t, fstHandle handle, const unsigned char* bits) {
      static_cast<RtlValues*>(told)->value(handle, reinterpret_cast<const char*>(bits));
    };
    return fstReaderIterBlocks(reader.get(), tell, &values, nullptr) != 0;
  }
  void read_buffer(std::uint16_t* values) const override {
    const auto& root = *this->model.rootp;
    if constexpr (
        requires {
          root.mmu_top__DOT__u_datapath__DOT__gen_fast_buffer__DOT__u_buffer__DOT__memory_q;
        })
      copy(root.mmu_top__DOT__u_datapath__DOT__gen_fast_buffer__DOT__u_buffer__DOT__memory_q,
           values);
    else
      this->buffer.copy(values);
  }
  void read_accumulators(std::uint32_t* values) const override {
    const auto& root = *this->model.rootp;
    if constexpr (
        requires {
          root.mmu_top__DOT__u_datapath__DOT__gen_fast_sums__DOT__u_accumulators__DOT__memory_q;
        })
      copy(root.mmu_top__DOT__u_datapath__DOT__gen_fast_sums__DOT__u_accumulators__DOT__memory_q,
           values);
    else
      this->accumulators.copy(values);
  }
  bool read_cells(RtlCell* cells) const override { return copy_cells(*this->model.rootp, cells); }

 private:
  template <class Root>
  static bool copy_cells(const Root& root, RtlCell* cells) {
    if constexpr (requires {
                    root.mmu_top__DOT__u_datapath__DOT__gen_fast__DOT__u_array__DOT__act_q;
                  }) {
      copy_rows(root.mmu_top__DOT__u_datapath__DOT__gen_fast__DOT__u_array__DOT__act_q, 0, cells,
                &RtlCell::activation);
      copy_rows(root.mmu_top__DOT__u_datapath__DOT__gen_fast__DOT__u_array__DOT__active_q, 0, cells,
                &RtlCell::weight);
      copy_rows(root.mmu_top__DOT__u_datapath__DOT__gen_fast__DOT__u_array__DOT__shadow_q, 0, cells,
                &RtlCell::waiting);
      copy_rows(root.mmu_top__DOT__u_datapath__DOT__gen_fast__DOT__u_array__DOT__weight_q, 0, cells,
                &RtlCell::passing);
      copy_rows(root.mmu_top__DOT__u_datapath__DOT__gen_fast__DOT__u_array__DOT__psum_q, 1, cells,
                &RtlCell::sum);
      return true;
    }
    return false;
  }
  template <class Row, std::size_t height, class Value>
  static void copy_rows(const VlUnpacked<Row, height>& rows, std::size_t first, RtlCell* cells,
                        Value RtlCell::*member) {
    for (std::size_t r = first; r < height; ++r)
      for (std::size_t c = 0; c < sizeof(Row) / sizeof(rows[r][0]); ++c)
        (cells++)->*member = rows[r][c];
  }
  using Reader = std::unique_ptr<void, void (*)(void*)>;
  static Reader open_reader(const char* path) { return {fstReaderOpen(path), fstReaderClose}; }
  template <class Port>
  static std::byte& bytes_of(Port& port) {
    return reinterpret_cast<std::byte&>(port);
  }
  static RtlPorts ports_of(Model& model) {
    return {.clk_i = model.clk_i,
            .rst_ni = model.rst_ni,
            .start_i = model.start_i,
            .weight_scheme_i = model.weight_scheme_i,
            .status_o = model.status_o,
            .instruction_valid_i = model.instruction_valid_i,
            .instruction_i = bytes_of(model.instruction_i),
            .instruction_ready_o = model.instruction_ready_o,
            .load_request_o = model.load_request_o,
            .load_address_o = model.load_address_o,
            .load_bytes_o = model.load_bytes_o,
            .load_ready_i = model.load_ready_i,
            .load_valid_i = model.load_valid_i,
            .load_data_i = bytes_of(model.load_data_i),
            .weights_request_o = model.weights_request_o,
            .weights_address_o = model.weights_address_o,
            .weights_bytes_o = model.weights_bytes_o,
            .weights_ready_i = model.weights_ready_i,
            .weights_valid_i = model.weights_valid_i,
            .weights_data_i = bytes_of(model.weights_data_i),
            .store_request_o = model.store_request_o,
            .store_address_o = model.store_address_o,
            .store_bytes_o = model.store_bytes_o,
            .store_data_o = bytes_of(model.store_data_o),
            .store_ready_i = model.store_ready_i,
            .operand_request_o = model.operand_request_o,
            .operand_address_o = model.operand_address_o,
            .operand_bytes_o = model.operand_bytes_o,
            .operand_ready_i = model.operand_ready_i,
            .operand_valid_i = model.operand_valid_i,
            .operand_data_i = bytes_of(model.operand_data_i),
            .trace_start_o = model.trace_start_o,
            .trace_end_o = model.trace_end_o,
            .counter_i = model.counter_i,
            .counter_o = model.counter_o};
  }

  /// A fast view's banks, row by row.
  template <class Bank, std::size_t width, class Value>
  static void copy(const VlUnpacked<Bank, width>& banks, Value* values) {
    constexpr std::size_t rows = sizeof(Bank) / sizeof(banks[0][0]);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t bank = 0; bank < width; ++bank) *values++ = banks[bank][row];
  }
};

}  // namespace triptych::mmu
