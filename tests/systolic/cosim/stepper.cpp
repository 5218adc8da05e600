// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper.h"

#include "systolic/dram/memory.h"
#include "systolic/isa/check.h"
#include "tests/systolic/cosim/stepper_run.h"

namespace triptych::mmu {
namespace {

class Stepper : public Machine {
 public:
  explicit Stepper(const MachineConfig& config)
      : config_(config), memory_(config.dram_bytes), array_(config), vector_(config_) {}

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }
  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config_);
    RunReport report = StepperRun(program, config_, memory_.bytes(), array_, vector_).execute();
    if (!options.record_times) report.times.clear();
    return report;
  }
  std::vector<std::uint16_t> read_buffer() override { return array_.buffer; }
  std::vector<std::uint32_t> read_accumulators() override { return array_.accumulators; }

 private:
  MachineConfig config_;
  Memory memory_;
  StepperArray array_;
  StepperVector vector_;
};

}  // namespace

std::unique_ptr<Machine> open_stepper(const MachineConfig& machine) {
  validate(machine);
  return std::make_unique<Stepper>(machine);
}

}  // namespace triptych::mmu
