// A verilated mmu_top as its harness sees it: ports, a step, the memories, waves. The built-in
// models and those in shared objects (machine_library.h) have the same interface, and no type of
// Verilator or of a container crosses it. Changes here change every hash of a built machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace triptych::mmu {

/// The ports of systolic/rtl/mmu_top.sv, inside the model. Signals as wide as the machine are the
/// first of their bytes, little-endian.
struct RtlPorts {
  std::uint8_t& clk_i;
  std::uint8_t& rst_ni;
  std::uint8_t& start_i;
  std::uint8_t& weight_scheme_i;
  std::uint8_t& status_o;
  std::uint8_t& instruction_valid_i;
  std::byte& instruction_i;
  std::uint8_t& instruction_ready_o;
  std::uint8_t& load_request_o;
  std::uint32_t& load_address_o;
  std::uint16_t& load_bytes_o;
  std::uint8_t& load_ready_i;
  std::uint8_t& load_valid_i;
  std::byte& load_data_i;
  std::uint8_t& weights_request_o;
  std::uint32_t& weights_address_o;
  std::uint16_t& weights_bytes_o;
  std::uint8_t& weights_ready_i;
  std::uint8_t& weights_valid_i;
  std::byte& weights_data_i;
  std::uint8_t& store_request_o;
  std::uint32_t& store_address_o;
  std::uint16_t& store_bytes_o;
  std::byte& store_data_o;
  std::uint8_t& store_ready_i;
  std::uint8_t& operand_request_o;
  std::uint32_t& operand_address_o;
  std::uint16_t& operand_bytes_o;
  std::uint8_t& operand_ready_i;
  std::uint8_t& operand_valid_i;
  std::byte& operand_data_i;
  std::uint8_t& trace_start_o;
  std::uint8_t& trace_end_o;
  std::uint8_t& counter_i;
  std::uint64_t& counter_o;
};

/// A waveform file, closed with the object.
class RtlWaves {
 public:
  virtual ~RtlWaves() = default;
  virtual void dump(std::uint64_t time) = 0;
};

/// Told of the modules and signals of a waveform file, outside in.
class RtlHierarchy {
 public:
  virtual ~RtlHierarchy() = default;
  virtual void enter(std::string_view module) = 0;
  virtual void leave() = 0;
  /// "name", "name [7:0]" or, for an element of a memory, "name[3]". No parameters. Signals that
  /// are one wire have one handle.
  virtual void signal(std::string_view name, std::uint32_t handle) = 0;
};

/// Told of the values in a waveform file, in order of time.
class RtlValues {
 public:
  virtual ~RtlValues() = default;
  /// '0' and '1', the most significant first.
  virtual void value(std::uint32_t handle, std::string_view bits) = 0;
};

/// Registers of one cell. A weight stands behind the bit that enables it.
struct RtlCell {
  std::uint16_t activation = 0;
  std::uint32_t weight = 0;   ///< the one in use
  std::uint32_t waiting = 0;  ///< the next one
  std::uint32_t passing = 0;  ///< on its way down to a row
  std::uint32_t sum = 0;
};

class RtlModel : public RtlPorts {
 public:
  explicit RtlModel(const RtlPorts& ports) : RtlPorts(ports) {}
  RtlModel(const RtlModel&) = delete;
  RtlModel& operator=(const RtlModel&) = delete;
  virtual ~RtlModel() = default;

  /// Before the first eval(): the argument for $value$plusargs, "fault=3", without its "+".
  virtual void plusargs(std::span<const char* const> arguments) = 0;
  /// Lets the outputs follow the inputs.
  virtual void eval() = 0;
  /// nullptr when the file cannot be written.
  virtual std::unique_ptr<RtlWaves> open_waves(const char* path) = 0;
  /// False when the file, which is closed, cannot be read.
  virtual bool read_hierarchy(const char* path, RtlHierarchy& hierarchy) const = 0;
  /// The values of the signals with these handles, false as above.
  virtual bool read_values(const char* path, std::span<const std::uint32_t> handles,
                           RtlValues& values) const = 0;
  /// Row by row: `rows` values for each of buffer_rows, `columns` for each of accumulator_rows.
  virtual void read_buffer(std::uint16_t* values) const = 0;
  virtual void read_accumulators(std::uint32_t* values) const = 0;
  /// Row by row. False for a grid of cells, which has these registers elsewhere.
  virtual bool read_cells(RtlCell* cells) const = 0;
};

}  // namespace triptych::mmu
