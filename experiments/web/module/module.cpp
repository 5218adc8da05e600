// Functions of the array that its page calls in WebAssembly (messages.h). The registers of the PEs
// by cycle, too many for an answer, are words in memory.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/nn/models.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "experiments/web/array_run.h"
#include "experiments/web/module/messages.h"
#include "systolic/driver/listed_data.h"
#include "systolic/driver/pair.h"
#include "systolic/web/cxxrtl_model.h"
#include "systolic/web/models.h"

namespace triptych {

void add_systolic_backends(std::vector<const Backend*>& list);

namespace web {
namespace {

/// PEs times cycles that are written down. Longer programs are shown so far.
constexpr std::uint64_t kRecorded = 1'000'000;

/// Elements of an output that the page shows.
constexpr std::uint64_t kShownValues = 4096;

/// Registers of a PE in a cycle. A weight is its bits with its enable above them.
struct PeWords {
  std::uint32_t activation = 0, weight = 0, waiting = 0, passing = 0, sum = 0;
  std::uint32_t known = 0;  ///< which of them mean something, a bit each, from bit 0 on
};
constexpr std::uint32_t kActivation = 1, kWeight = 2, kSum = 16, kAll = 31;

/// A run's registers, for the page to read.
struct Recording {
  Recording() = default;
  Recording(const mmu::MachineConfig& machine, std::uint64_t longest)
      : rows(machine.rows), columns(machine.columns), pes(longest * rows * columns) {}

  PeWords* at(std::uint64_t cycle, std::uint32_t row, std::uint32_t column) {
    const auto index = (cycle * rows + row) * columns + column;
    return index < pes.size() ? &pes[index] : nullptr;
  }

  std::uint32_t rows = 0, columns = 0;
  std::vector<PeWords> pes;         ///< [cycle][row][column]
  std::vector<std::uint32_t> tops;  ///< [cycle][column][sum that enters at the top, known]
};

struct State {
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

std::uint32_t bits_of(double sum) { return std::bit_cast<std::uint32_t>(static_cast<float>(sum)); }

/// Writes the twin's multiply-adds down as what registers hold: activation and weight in the
/// multiply-add's cycle, the sum behind it.
class Recorder {
 public:
  Recorder(Recording& recording, const mmu::MachineConfig& machine)
      : recording_(recording),
        until_sum_(machine.pe_latency + machine.product_cycles()),
        enabled_(1U << 8 * machine.element_bytes()) {
    recording_ = Recording(machine, longest(machine));
    recording_.tops.resize(longest(machine) * machine.columns * 2);
  }

  void operator()(const mmu::PeStep& step) {
    if (auto* pe = recording_.at(step.cycle, step.row, step.column)) {
      pe->activation = bits_of(step.activation) >> 16;
      pe->weight = bits_of(step.weight) >> 16 | enabled_;
      pe->known |= kActivation | kWeight;
    }
    if (auto* pe = recording_.at(step.cycle + until_sum_, step.row, step.column)) {
      pe->sum = bits_of(step.sum_out);
      pe->known |= kSum;
    }
    const auto top = (step.cycle * recording_.columns + step.column) * 2;
    if (step.row == 0 && top < recording_.tops.size()) {
      recording_.tops[top] = bits_of(step.sum_in);
      recording_.tops[top + 1] = 1;
    }
  }

 private:
  Recording& recording_;
  std::uint64_t until_sum_;
  std::uint32_t enabled_;
};

/// Without a weight of its own a PE hands on what comes to it.
void hand_on(Recording& recording, const mmu::MachineConfig& machine) {
  const std::uint64_t cycles = longest(machine), latency = machine.pe_latency;
  for (std::uint64_t t = latency; t < cycles; ++t)
    for (std::uint32_t r = 0; r < machine.rows; ++r)
      for (std::uint32_t c = 0; c < machine.columns; ++c) {
        PeWords& pe = *recording.at(t, r, c);
        if (c > 0 && (pe.known & kActivation) == 0)
          if (const PeWords& left = *recording.at(t - 1, r, c - 1); left.known & kActivation) {
            pe.activation = left.activation;
            pe.known |= kActivation;
          }
        if (r > 0 && (pe.known & kSum) == 0)
          if (const PeWords& above = *recording.at(t - latency, r - 1, c); above.known & kSum) {
            pe.sum = above.sum;
            pe.known |= kSum;
          }
      }
}

/// A cycle's registers are those behind the edge before it; before cycle 0 there is none.
Recording recording_of(const mmu::MachineConfig& machine, std::span<const mmu::CellState> cells) {
  const std::size_t pes = std::size_t{machine.rows} * machine.columns;
  Recording recording(machine, 1);
  const auto enable = [&](const mmu::CellState& cell) {
    return std::uint32_t{cell.enabled} << 8 * machine.element_bytes();
  };
  for (const auto& cell : cells.first(cells.size() - pes))
    recording.pes.push_back(
        {cell.activation, cell.weight | enable(cell), cell.waiting, cell.passing, cell.sum, kAll});
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

/// `lines`: of the instructions in the text. Empty: one after the other.
Json program_json(const ArrayRun& run, const std::vector<std::size_t>& lines) {
  Json list = Json::array();
  for (std::size_t i = 0; i < run.program.size(); ++i) {
    const auto* info = mmu::find_opcode(run.program[i].opcode());
    list.push_back({{"text", mmu::disassemble(run.program[i])},
                    {"line", lines.empty() ? i + 1 : lines[i]},
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

/// Runs the same program on the RTL. "" or what differs from the twin.
std::string run_rtl(const ArrayRun& run, Json& answer) {
  auto [machine, signals] = mmu::open_recorded_rtl(run.machine, longest(run.machine));
  std::ranges::copy(run.before, machine->dram().begin());
  const auto report =
      machine->run(run.program, {.record_times = true, .cells_end = longest(run.machine)});
  state().rtl = recording_of(run.machine, report.cells);
  state().signals = *signals;
  Json names = Json::array();
  for (const auto& signal : *signals)
    names.push_back({{"name", signal.name}, {"bits", signal.bits}});
  answer["signals"] = std::move(names);
  answer["rtl_counters"] = counters_json(report.counters);
  const auto memory = machine->dram().first(run.after.size());
  const auto [got, expected] = std::ranges::mismatch(memory, run.after);
  if (expected != run.after.end())
    return fmt::format("DRAM byte {} differs", expected - run.after.begin());
  return mmu::difference(report, run.report, run.program);
}

/// The results of a program's text, and the first one that the text expects otherwise.
Json outputs_json(const mmu::Listing& listing, const ArrayRun& run) {
  Json list = Json::array();
  for (const auto& array : listing.arrays) {
    if (array.is_input) continue;
    Json values = Json::array();
    for (std::uint64_t i = 0; i < std::min(array.elements(), kShownValues); ++i)
      values.push_back(mmu::value_text(array.type, mmu::value_bits(array, run.after, i)));
    list.push_back({{"name", array.name},
                    {"type", to_string(array.type)},
                    {"shape", array.shape},
                    {"values", std::move(values)}});
  }
  return list;
}

/// {"lines"}: of the instructions of a program's text.
Json assemble_request(const Json& request) {
  return {{"lines", mmu::read_listing(request.at("program").get<std::string>()).lines}};
}

Json run_request(const Json& request) {
  const std::string machine_json = request.at("machine").dump();
  const auto machine = mmu::parse_machine(machine_json);
  state().rtl = {};
  state().signals.clear();
  std::optional<mmu::Listing> listing;
  if (request.contains("program"))
    listing = mmu::read_listing(request.at("program").get<std::string>());
  auto run = run_on_array(systolic_backend(), array_problem(request), machine_json,
                          Recorder(state().twin, machine));
  const auto product = run.after;
  if (listing) run = run_listing(*listing, run, Recorder(state().twin, machine));
  hand_on(state().twin, machine);
  Json answer = {
      {"cycles", run.report.counters.cycles},
      {"recorded", std::min(run.report.counters.cycles + 1, longest(machine))},
      {"rows", machine.rows},
      {"columns", machine.columns},
      {"program", program_json(run, listing ? listing->lines : std::vector<std::size_t>())},
      {"stalls", stalls_json(run.report)},
      {"counters", counters_json(run.report.counters)}};
  if (listing) {
    answer["outputs"] = outputs_json(*listing, run);
    answer["unexpected"] = mmu::first_unexpected(*listing, run.after, run.report.counters);
    answer["as_product"] = std::ranges::equal(product, std::span(run.after).first(product.size()));
  } else {
    answer["y"] = std::vector<float>(run.y.as<float>().begin(), run.y.as<float>().end());
  }
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

}  // namespace
}  // namespace web
}  // namespace triptych

extern "C" {

const char* TRIPTYCH_EXPORT(machines)() {
  return triptych::web::answer_with(triptych::web::machines_json());
}

const char* TRIPTYCH_EXPORT(layers)() {
  return triptych::web::answer_with(triptych::web::layers_json());
}

/// Runs what the request says, an object that page.js makes.
const char* TRIPTYCH_EXPORT(run)() {
  return triptych::web::answer_with(triptych::web::run_request(triptych::web::request()));
}

/// Reads {"program": text} without running it.
const char* TRIPTYCH_EXPORT(assemble)() {
  return triptych::web::answer_with(triptych::web::assemble_request(triptych::web::request()));
}

const void* TRIPTYCH_EXPORT(pes)(int rtl) {
  return (rtl != 0 ? triptych::web::state().rtl : triptych::web::state().twin).pes.data();
}
const std::uint32_t* TRIPTYCH_EXPORT(tops)() { return triptych::web::state().twin.tops.data(); }
const std::uint32_t* TRIPTYCH_EXPORT(signal)(std::size_t index) {
  return triptych::web::state().signals.at(index).values.data();
}
}
