// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/machine_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/base/error.h"
#include "experiments/machines/array_machine.h"
#include "systolic/driver/machines.h"

namespace triptych::compare {
namespace {

bool takes(const Backend& backend, const char* option) {
  return std::ranges::count(backend.options(), option) > 0;
}

std::string simulation_label(mmu::Simulation simulate) {
  if (simulate == mmu::Simulation::Rtl) return "RTL";
  if (simulate == mmu::Simulation::Both) return "RTL and twin";
  return "twin";
}

mmu::Simulation simulation_of(std::string_view text, std::string_view name) {
  try {
    return value_of<mmu::Simulation>(name);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("the option backends {}: the simulation {}", text, error.what()));
  }
}

/// "cpu", "systolic:rtl", "cpu=f32".
MachineRequest parse_machine(std::string_view text, const training::ExecutionConfig& common) {
  const auto equals = text.find('=');
  const auto machine = text.substr(0, equals);
  const auto colon = machine.find(':');
  MachineRequest request = {.label = {}, .config = common};
  auto& config = request.config;
  config.backend = machine.substr(0, colon);
  const auto& backend = find_backend(config.backend);
  if (!takes(backend, "machine"))
    config.machine.clear();
  else if (config.machine.empty())
    config.machine = mmu::kComparedMachine;
  if (!takes(backend, "simulate")) {
    config.simulate.reset();
    if (colon != std::string_view::npos) {
      throw InvalidArgument(fmt::format(
          "the option backends {}: {} is not simulated; write systolic:rtl or systolic:twin", text,
          config.backend));
    }
  } else {
    config.simulate = config.simulate.value_or(mmu::Simulation::Twin);
    if (colon != std::string_view::npos)
      config.simulate = simulation_of(text, machine.substr(colon + 1));
  }
  std::vector<std::string> notes;
  if (config.simulate) notes.push_back(simulation_label(*config.simulate));
  if (equals != std::string_view::npos) {
    config.contract = contract_from_string(text.substr(equals + 1));
    notes.emplace_back(to_string(config.contract));
  }
  request.label = config.backend;
  if (!notes.empty()) request.label += fmt::format(" ({})", fmt::join(notes, ", "));
  return request;
}

std::string every_machine() {
  std::vector<std::string_view> names;
  for (const Backend* backend : all_backends()) {
    if (backend->emulates().empty()) names.push_back(backend->name());
  }
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

bool MachineRequest::stands_in() const { return !find_backend(config.backend).emulates().empty(); }

std::vector<MachineRequest> parse_machines(std::string_view text,
                                           const training::ExecutionConfig& common) {
  const auto list = text == "all" ? every_machine() : std::string(text);
  std::vector<MachineRequest> requests;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    auto request = parse_machine(std::string_view(list).substr(begin, end - begin), common);
    if (std::ranges::count(requests, request.label, &MachineRequest::label) > 0) {
      throw InvalidArgument(fmt::format("the option backends names {} twice", request.label));
    }
    requests.push_back(std::move(request));
    begin = end + 1;
  }
  return requests;
}

std::string target_clock_note(const MachineRequest& request) {
  if (!request.config.simulate) return {};
  return mmu::target_clock_note(machines::array_of(request.config));
}

std::string to_string(const MachineRequest& request, const Absence& absence) {
  const bool gpu = request.config.backend == "cuda";
  const auto what = absence.gave_up ? fmt::format("{} gave up", request.label)
                                    : fmt::format("no {} here", gpu ? "GPU" : request.label);
  return fmt::format("{}: {}{}{}", what, absence.reason, absence.remedy.empty() ? "" : "; ",
                     absence.remedy);
}

}  // namespace triptych::compare
