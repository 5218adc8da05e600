// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/twin.h"

#include "systolic/dram/memory.h"
#include "systolic/isa/check.h"
#include "systolic/twin/functional.h"
#include "systolic/twin/timing.h"

namespace triptych::mmu {
namespace {

class Twin : public Machine {
 public:
  explicit Twin(const MachineConfig& config)
      : config_(config), memory_(config.dram_bytes), functional_(config, memory_.bytes()) {}

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }

  RunReport run(const Program& program, const RunOptions& options) override {
    const bool shows = options.pes != nullptr;
    const bool known = options.counted != nullptr && !options.record_times && !shows;
    RunReport report = known ? RunReport{*options.counted, {}, {}}
                             : estimate(program, config_, {options.record_times || shows});
    functional_.begin_program();
    for (std::size_t i = 0; i < program.size(); ++i) {
      if (shows && program[i].opcode() == Opcode::Matmul)
        functional_.show(program[i], report.times[i].start, i, *options.pes);
      functional_.execute(program[i]);
    }
    return report;
  }

  std::vector<std::uint16_t> read_buffer() override { return functional_.buffer(); }
  std::vector<std::uint32_t> read_accumulators() override { return functional_.accumulators(); }

 private:
  MachineConfig config_;
  Memory memory_;
  Functional functional_;
};

}  // namespace

std::unique_ptr<Machine> open_twin(const MachineConfig& machine) {
  validate(machine);
  return std::make_unique<Twin>(machine);
}

RunReport estimate(const Program& program, const MachineConfig& machine,
                   const RunOptions& options) {
  check_program(program, machine);
  return simulate_timing(program, machine, options.record_times);
}

}  // namespace triptych::mmu
