// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <stdexcept>

#include "systolic/sim/built_in.h"
#include "systolic/sim/machine_library.h"
#include "systolic/sim/own_modules.h"
#include "systolic/sim/rtl_machine.h"

namespace triptych::mmu {
namespace {

/// The RTL of a machine: one of these, or neither.
struct Found {
  const BuiltInModel* built_in = nullptr;
  std::filesystem::path library;
};

Found find_rtl(const MachineConfig& config) {
  std::vector<ArrayKind> kinds{ArrayKind::Fast, ArrayKind::Grid};
  if (config.array) kinds = {*config.array};
  if (const auto own = array_of_own_modules(config)) kinds = {*own};
  for (const ArrayKind kind : kinds) {
    for (const BuiltInModel& model : built_in_models())
      if (config.rtl.empty() && rtl_parameters(config, kind) ==
                                    rtl_parameters(find_machine(model.machine), ArrayKind::Fast))
        return {&model, {}};
    for (const Effort effort : {Effort::Full, Effort::Quick}) {
      const std::filesystem::path library = library_file(config, kind, effort);
      if (std::filesystem::exists(library)) return {nullptr, library};
    }
  }
  return {};
}

/// Advice to simulate the twin instead. None for modules of one's own.
std::string or_the_twin(const MachineConfig& config) {
  return config.rtl.empty() ? ", or use the option simulate twin" : "";
}

/// "triptych machine build FILE" for this machine.
std::string build_command(const MachineConfig& config) {
  const bool quote = config.source.find(' ') != std::string::npos;
  const std::string source = config.source.empty() ? "FILE" : config.source;
  return fmt::format("triptych machine build {}", quote ? '"' + source + '"' : source);
}

}  // namespace

std::unique_ptr<Machine> open_rtl_machine(const MachineConfig& config) {
  validate(config);
  const Found found = find_rtl(config);
  if (found.built_in != nullptr)
    return make_rtl_machine(std::unique_ptr<RtlModel>(found.built_in->make()), config);
  if (found.library.empty())
    throw std::runtime_error(fmt::format(
        "[mmu] the RTL of machine '{}' is not built{}: type \"{}\"{}", config.name,
        config.rtl.empty() ? "" : fmt::format(" as the modules in {} are now", config.rtl),
        build_command(config), or_the_twin(config)));
  try {
    return make_rtl_machine(open_library(found.library), config);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("[mmu] {}; type \"{}\" with the option force{}",
                                         error.what(), build_command(config), or_the_twin(config)));
  }
}

std::string_view to_string(RtlState state) {
  switch (state) {
    case RtlState::BuiltIn:
      return "built-in";
    case RtlState::Built:
      return "built";
    case RtlState::NotBuilt:
      break;
  }
  return "not built";
}

RtlState rtl_state(const MachineConfig& config) {
  const Found found = find_rtl(config);
  if (found.built_in != nullptr) return RtlState::BuiltIn;
  return found.library.empty() ? RtlState::NotBuilt : RtlState::Built;
}

std::vector<std::string> rtl_machine_names() {
  std::vector<std::string> names;
  for (const BuiltInModel& model : built_in_models()) names.emplace_back(model.machine);
  return names;
}

}  // namespace triptych::mmu
