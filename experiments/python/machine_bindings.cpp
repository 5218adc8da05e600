// Machine: the systolic array by itself, its programs and their actions in each cycle.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <mutex>

#include "core/base/choice.h"
#include "core/base/error.h"
#include "experiments/python/gate.h"
#include "experiments/python/module.h"
#include "systolic/driver/driver.h"
#include "systolic/sim/rtl_machine.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

/// Runs `work` while others may have the interpreter. The exceptions of the systolic module become
/// those of the Python module.
template <class Work>
auto guarded(const Work& work) {
  const OutsidePython others_may_run;
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument(error.what());
  } catch (const mmu::Mismatch& error) {
    throw NumericError(error.what());
  } catch (const std::runtime_error& error) {
    throw DeviceError(error.what());
  }
}

/// Any thread may call. One call waits for the other.
class PythonMachine {
 public:
  PythonMachine(const std::string& json, const std::string& simulate)
      : simulation_(value_of<mmu::Simulation>(simulate)) {
    machine_ = guarded([&] { return mmu::open_machine(mmu::parse_machine(json), simulation_); });
  }

  mmu::RunReport run(const std::string& text, std::uint64_t cells_begin, std::uint64_t cells_end) {
    return guarded([&] {
      const auto program = mmu::assemble_program(text);
      const std::lock_guard lock(busy_);
      mmu::verify(program, machine_->config());
      auto report = machine_->run(
          program, {.record_times = true, .cells_begin = cells_begin, .cells_end = cells_end});
      if (cells_begin < cells_end && report.cells.empty()) throw_without_cells();
      return report;
    });
  }
  std::vector<std::uint16_t> buffer() {
    return guarded([&] {
      const std::lock_guard lock(busy_);
      return machine_->read_buffer();
    });
  }
  std::vector<std::uint32_t> accumulators() {
    return guarded([&] {
      const std::lock_guard lock(busy_);
      return machine_->read_accumulators();
    });
  }
  std::span<std::byte> dram() { return machine_->dram(); }
  const mmu::MachineConfig& config() const { return machine_->config(); }

 private:
  [[noreturn]] void throw_without_cells() const {
    if (simulation_ == mmu::Simulation::Twin) {
      throw UnsupportedError(
          "the twin computes whole instructions and has no cells to look into; open the machine "
          "with simulate=\"rtl\"");
    }
    throw UnsupportedError(
        "no cell was recorded: the program has fewer cycles, or the RTL is a grid, whose cells are "
        "in its waves alone");
  }

  mmu::Simulation simulation_;
  std::unique_ptr<mmu::Machine> machine_;
  std::mutex busy_;
};

/// An array of one member of each cell, [cycles, rows, columns].
template <class Value, class Member>
py::array_t<Value> cells_of(const mmu::RunReport& report, const mmu::MachineConfig& config,
                            Member member) {
  const auto cells = std::size_t{config.rows} * config.columns;
  py::array_t<Value> array(
      {report.cells.size() / cells, std::size_t{config.rows}, std::size_t{config.columns}});
  auto* values = array.mutable_data();
  for (const auto& cell : report.cells) *values++ = cell.*member;
  return array;
}

/// (instruction, unit, start, end) of each.
py::list instructions_of(const mmu::RunReport& report, const mmu::Program& program) {
  py::list list;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto* info = mmu::find_opcode(program[i].opcode());
    list.append(py::make_tuple(mmu::disassemble(program[i]), mmu::to_string(info->unit),
                               report.times[i].start, report.times[i].end));
  }
  return list;
}

py::dict run(PythonMachine& machine, const std::string& text, std::uint64_t cells_begin,
             std::uint64_t cells_end) {
  const auto report = machine.run(text, cells_begin, cells_end);
  py::dict counters;
  for (const auto& count : mmu::named_counts(report.counters))
    counters[count.name.c_str()] = count.value;
  py::list stalls;
  for (const auto& stall : report.stalls)
    stalls.append(py::make_tuple(mmu::to_string(stall.cause), stall.begin, stall.end));
  py::dict result;
  result["counters"] = counters;
  result["instructions"] = instructions_of(report, mmu::assemble_program(text));
  result["stalls"] = stalls;
  if (cells_begin >= cells_end) return result;
  const auto& config = machine.config();
  result["activation"] = cells_of<std::uint16_t>(report, config, &mmu::CellState::activation);
  result["weight"] = cells_of<std::uint16_t>(report, config, &mmu::CellState::weight);
  result["enabled"] = cells_of<bool>(report, config, &mmu::CellState::enabled);
  result["sum"] = cells_of<std::uint32_t>(report, config, &mmu::CellState::sum);
  return result;
}

/// Values as an array [-1, width].
template <class Value>
py::array_t<Value> rows_of(const std::vector<Value>& values, std::size_t width) {
  py::array_t<Value> array({values.size() / width, width});
  std::ranges::copy(values, array.mutable_data());
  return array;
}

}  // namespace

void add_machine(py::module_& module) {
  py::class_<PythonMachine>(module, "Machine")
      .def(py::init<const std::string&, const std::string&>())
      .def("config", [](const PythonMachine& machine) { return mmu::to_json(machine.config()); })
      .def("dram",
           [](const py::object& self) {
             const auto bytes = self.cast<PythonMachine&>().dram();
             return py::array_t<std::uint8_t>({bytes.size()}, {std::size_t{1}},
                                              reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                              self);
           })
      .def("buffer",
           [](PythonMachine& machine) { return rows_of(machine.buffer(), machine.config().rows); })
      .def("accumulators",
           [](PythonMachine& machine) {
             return rows_of(machine.accumulators(), machine.config().columns);
           })
      .def("run", &run);
  module.def("machine_names", &mmu::machine_names);
  module.def("machine_json", [](const std::string& name) {
    return guarded([&] { return mmu::to_json(mmu::find_machine(name)); });
  });
  module.def("rtl_machines", &mmu::rtl_machines);
}

}  // namespace triptych::python
