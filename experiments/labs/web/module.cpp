// Functions that the page of the array calls in WebAssembly. Requests and answers are JSON; the
// registers of the PEs by cycle, too many for that, are words in memory.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/nn/models.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "experiments/labs/array_run.h"
#include "systolic/driver/pair.h"
#include "systolic/twin/array_view.h"
#include "systolic/web/cxxrtl_model.h"
#include "systolic/web/models.h"

#define TRIPTYCH_EXPORT(name) __attribute__((export_name(#name))) name

namespace triptych {

void add_systolic_backends(std::vector<const Backend*>& list);

namespace labs {
namespace {

using Json = nlohmann::ordered_json;

/// PEs times cycles that are written down; longer programs are shown so far.
constexpr std::uint64_t kRecorded = 1'000'000;
/// Words of a PE in a cycle: activation, weight, shadow, moving, sum, and which of them mean
/// something (bits 0 to 4). A weight is its bits with its enable above them.
constexpr std::size_t kPeWords = 6;
constexpr std::uint32_t kAll = 0b11111;

/// The last run, for the page to read.
struct Recording {
  std::uint64_t cycles = 0;
  std::vector<std::uint32_t> pes;   ///< [cycle][row][column][kPeWords]
  std::vector<std::uint32_t> tops;  ///< [cycle][column][value, known]
};

struct State {
  std::string text;  ///< of the last answer
  std::vector<std::byte> request;
  Recording twin, rtl;
  std::vector<mmu::RecordedSignal> signals;
};

State& state() {
  static State state;
  return state;
}

std::uint64_t longest(const mmu::MachineConfig& machine) {
  return kRecorded / machine.rows / machine.columns;
}

std::uint32_t element_bits(const mmu::MachineConfig& machine) {
  return 8 * machine.element_bytes();
}

Recording recording_of(const ArrayRun& run) {
  const auto& machine = run.machine;
  const mmu::ArrayView view(run.program, machine, run.report, run.before);
  Recording recording;
  recording.cycles = std::min(run.report.counters.cycles + 1, longest(machine));
  for (std::uint64_t t = 0; t < recording.cycles; ++t) {
    for (std::uint32_t r = 0; r < machine.rows; ++r)
      for (std::uint32_t c = 0; c < machine.columns; ++c) {
        const mmu::PeState pe = view.at(t, r, c);
        const auto weight = [&](const std::optional<mmu::PeWeight>& w) -> std::uint32_t {
          return w ? w->bits | std::uint32_t{w->enabled} << element_bits(machine) : 0;
        };
        const std::uint32_t known =
            std::uint32_t{pe.activation.has_value()} | std::uint32_t{pe.weight.has_value()} << 1 |
            std::uint32_t{pe.shadow.has_value()} << 2 | std::uint32_t{pe.moving.has_value()} << 3 |
            std::uint32_t{pe.sum.has_value()} << 4;
        for (const std::uint32_t word :
             {std::uint32_t{pe.activation.value_or(0)}, weight(pe.weight), weight(pe.shadow),
              weight(pe.moving), pe.sum.value_or(0), known})
          recording.pes.push_back(word);
      }
    for (std::uint32_t c = 0; c < machine.columns; ++c) {
      const auto top = view.top(t, c);
      recording.tops.push_back(top.value_or(0));
      recording.tops.push_back(top.has_value() ? 1 : 0);
    }
  }
  return recording;
}

Recording recording_of(const mmu::RtlRecord& record, std::uint64_t cycles) {
  Recording recording;
  recording.cycles = std::min(record.cycles, cycles + 1);
  const std::size_t pes = recording.cycles * (record.pes.size() / record.cycles);
  for (const mmu::PeRegisters& pe : std::span(record.pes).first(pes))
    for (const std::uint32_t word : {pe.activation, pe.weight, pe.shadow, pe.moving, pe.sum, kAll})
      recording.pes.push_back(word);
  const std::size_t tops = recording.cycles * (record.tops.size() / record.cycles);
  for (const std::uint32_t top : std::span(record.tops).first(tops)) {
    recording.tops.push_back(top);
    recording.tops.push_back(1);
  }
  return recording;
}

const Backend& systolic_backend() {
  static const auto list = [] {
    std::vector<const Backend*> backends;
    add_systolic_backends(backends);
    return backends;
  }();
  return *list.front();
}

Json counters_json(const mmu::Counters& counters) {
  Json json;
  for (const auto& [name, value] : mmu::named_counts(counters)) json[name] = value;
  return json;
}

Json program_json(const ArrayRun& run) {
  Json list = Json::array();
  for (std::size_t i = 0; i < run.program.size(); ++i) {
    const auto* info = mmu::find_opcode(run.program[i].opcode());
    list.push_back({{"text", mmu::disassemble(run.program[i])},
                    {"unit", info->opcode == mmu::Opcode::Halt ? "halt" : to_string(info->unit)},
                    {"start", run.report.times[i].start},
                    {"end", run.report.times[i].end}});
  }
  return list;
}

Json stalls_json(const mmu::RunReport& report) {
  Json list = Json::array();
  for (const auto& stall : report.stalls)
    list.push_back({to_string(stall.cause), stall.begin, stall.end});
  return list;
}

/// Runs the same program on the RTL; "" or what differs from the twin.
std::string run_rtl(const ArrayRun& run, Json& answer) {
  auto [machine, record] = mmu::open_recorded_rtl(run.machine, longest(run.machine));
  std::ranges::copy(run.before, machine->dram().begin());
  const auto report = machine->run(run.program, {.record_times = true});
  state().rtl = recording_of(*record, report.counters.cycles);
  state().signals = record->signals;
  Json signals = Json::array();
  for (const auto& signal : record->signals)
    signals.push_back({{"name", signal.name}, {"bits", signal.bits}});
  answer["signals"] = std::move(signals);
  answer["rtl_counters"] = counters_json(report.counters);
  const auto memory = machine->dram().first(run.after.size());
  const auto [got, expected] = std::ranges::mismatch(memory, run.after);
  if (expected != run.after.end())
    return fmt::format("DRAM byte {} differs", expected - run.after.begin());
  return mmu::difference(report, run.report, run.program);
}

Json run_request(const Json& request) {
  const std::string machine_json = request.at("machine").dump();
  const auto machine = mmu::parse_machine(machine_json);
  const auto run = run_on_array(systolic_backend(), array_problem(request), machine_json);
  state().twin = recording_of(run);
  state().rtl = {};
  state().signals.clear();
  Json answer = {{"cycles", run.report.counters.cycles},
                 {"recorded", state().twin.cycles},
                 {"rows", machine.rows},
                 {"columns", machine.columns},
                 {"program", program_json(run)},
                 {"stalls", stalls_json(run.report)},
                 {"counters", counters_json(run.report.counters)},
                 {"y", std::vector<float>(run.y.as<float>().begin(), run.y.as<float>().end())}};
  if (request.at("rtl").get<bool>()) answer["difference"] = run_rtl(run, answer);
  return answer;
}

/// The shipped machines with their figures, and which have RTL here.
Json machines_json() {
  Json list = Json::array();
  for (const auto& model : mmu::machine_names()) {
    const auto compiled = mmu::compiled_models();
    const bool rtl =
        std::ranges::find(compiled, model, &mmu::CompiledModel::machine) != compiled.end();
    list.push_back({{"rtl", rtl}, {"machine", Json::parse(to_json(mmu::find_machine(model)))}});
  }
  return list;
}

/// The convolutions of U-Net S that keep the image's size.
Json layers_json() {
  const auto config = model_preset("unet-s");
  const auto graph = build_inference_graph(config, 1, config.size, config.size, std::nullopt);
  Json list = Json::array();
  for (const auto& node : graph.nodes()) {
    if (node.op->name() != Conv::kName) continue;
    const auto& w = graph.value(node.inputs[1]).spec.shape;
    list.push_back({{"name", node.name}, {"filters", w[0]}, {"channels", w[1]}, {"window", w[2]}});
  }
  return list;
}

const char* answer_with(const Json& json) {
  state().text = json.dump();
  return state().text.c_str();
}

}  // namespace
}  // namespace labs
}  // namespace triptych

// Functions that the page calls; texts are UTF-8 and end with a zero.
extern "C" {

/// Memory for the next request's text.
std::byte* TRIPTYCH_EXPORT(request_memory)(std::size_t bytes) {
  auto& request = triptych::labs::state().request;
  request.assign(bytes + 1, std::byte{0});
  return request.data();
}

const char* TRIPTYCH_EXPORT(machines)() {
  return triptych::labs::answer_with(triptych::labs::machines_json());
}

const char* TRIPTYCH_EXPORT(layers)() {
  return triptych::labs::answer_with(triptych::labs::layers_json());
}

/// Runs what the request says, an object that page.js makes.
const char* TRIPTYCH_EXPORT(run)() {
  const auto* text = reinterpret_cast<const char*>(triptych::labs::state().request.data());
  return triptych::labs::answer_with(
      triptych::labs::run_request(triptych::labs::Json::parse(text)));
}

const std::uint32_t* TRIPTYCH_EXPORT(pes)(int rtl) {
  return (rtl != 0 ? triptych::labs::state().rtl : triptych::labs::state().twin).pes.data();
}
const std::uint32_t* TRIPTYCH_EXPORT(tops)(int rtl) {
  return (rtl != 0 ? triptych::labs::state().rtl : triptych::labs::state().twin).tops.data();
}
const std::uint32_t* TRIPTYCH_EXPORT(signal)(std::size_t index) {
  return triptych::labs::state().signals.at(index).values.data();
}
}
