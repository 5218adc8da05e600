// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/gpu_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backends/cuda/emulation/emulated_device.h"
#include "backends/cuda/emulation/request_watcher.h"
#include "backends/cuda/lessons/access_patterns.h"
#include "core/ops/conv.h"
#include "core/ops/matmul.h"
#include "core/runtime/counter_fields.h"
#include "core/runtime/kernel_fault.h"
#include "experiments/web/request_record.h"

namespace triptych::web {
namespace {

using cuda::emulation::Access;
using cuda::emulation::EmulatedDevice;
using cuda::emulation::EmulatedStream;
using cuda::emulation::Request;
using cuda::emulation::RequestPlace;
using cuda::emulation::Space;
using page::Json;

/// Requests of a warp at one place that are kept: a loop's first turns.
constexpr std::size_t kVisits = 8;
constexpr unsigned kWarps = 2;  ///< of the first and of the last block

AccessSite site_of(const RequestPlace& place) {
  const auto& where = place.where;
  return {cuda::emulation::file_of(where),
          where.line(),
          where.column(),
          where.part(),
          place.space,
          place.access};
}

/// Keeps the first requests of some warps at each place.
class Log : public cuda::emulation::RequestWatcher {
 public:
  explicit Log(std::vector<NamedArray> arrays) : arrays_(std::move(arrays)) {}

  void asked(const RequestPlace& place, const Request& request) override {
    const auto& last = cuda::emulation::gridDim;
    const auto& [x, y, z] = place.block;
    const bool is_last = x + 1 == last.x && y + 1 == last.y && z + 1 == last.z;
    if (place.warp >= kWarps || (x + y + z != 0 && !is_last)) return;
    auto& visits = visits_[site_of(place)];
    auto& kept = count_[{&visits, is_last, place.warp}];
    if (kept++ >= kVisits) return;
    auto json = request_json(place, request, arrays_, "a table");
    json["block"] = index_json(x, y, z);
    json["warp"] = place.warp;
    visits.push_back(std::move(json));
  }

  /// None where only other warps came.
  Json visits(const AccessSite& site) const {
    const auto found = visits_.find(site);
    return found == visits_.end() ? Json::array() : found->second;
  }

 private:
  std::vector<NamedArray> arrays_;
  std::map<AccessSite, Json> visits_;
  std::map<std::tuple<const Json*, bool, unsigned>, std::size_t> count_;
};

/// An operator on arrays that have names.
struct Problem {
  std::string name;
  OpPtr op;
  std::vector<Shape> shapes;
  std::vector<std::string> names;  ///< of the inputs, then of the output
};

/// A kernel that runs on a device by itself, all numbers 0.
class Run {
 public:
  Run(EmulatedDevice& device, const Problem& problem) : device_(device), problem_(problem) {
    std::vector<TensorSpec> specs;
    for (const auto& shape : problem.shapes) {
      specs.push_back({DType::F32, shape});
      inputs_.push_back(Operand::dense(specs.back()));
      buffers_.push_back(device.allocate(specs.back().bytes()));
    }
    outputs_.push_back(Operand::dense(problem.op->infer(specs).at(0)));
    buffers_.push_back(device.allocate(outputs_[0].spec.bytes()));
    constants_.resize(inputs_.size());
  }

  KernelQuery query() const { return {*problem_.op, inputs_, outputs_, Contract::F32, constants_}; }
  std::vector<NamedArray> arrays() const {
    std::vector<NamedArray> list;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      list.push_back({problem_.names[i], reinterpret_cast<std::uintptr_t>(buffers_[i]->data()),
                      buffers_[i]->size()});
    }
    return list;
  }
  void launch(const KernelEntry& entry) {
    const auto kernel = entry.prepare(query(), device_);
    const auto scratch = device_.allocate(kernel->scratch_bytes());
    std::vector<const std::byte*> in;
    for (std::size_t i = 0; i + 1 < buffers_.size(); ++i) in.push_back(buffers_[i]->data());
    std::byte* out = buffers_.back()->data();
    device_.submit(0, [&](Stream* stream) {
      kernel->run({in, {&out, 1}, scratch->data(), stream});
    });
  }

 private:
  EmulatedDevice& device_;
  const Problem& problem_;
  std::vector<Operand> inputs_, outputs_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<const Tensor*> constants_;
};

/// One thread: the order of blocks, hence what is kept, is the same every time.
DeviceOptions options(const char* emulation) {
  return {.threads = 1, .extra = {{"emulation", emulation}}};
}

Json access_json(const AccessCounters& at) {
  Json json;
  visit_accesses(at, std::nullopt, [&](const char* name, auto count) { json[name] = count; });
  return json;
}

Json total_json(const KernelCounters& counters, Space space) {
  AccessCounters sum;
  for (const auto access : {Access::Load, Access::Store, Access::Atomic})
    sum += counters.total(space, access);
  return access_json(sum);
}

Json kernel_json(const KernelEntry& entry, const KernelCounters& counters, const Log& log) {
  Json sites = Json::array();
  for (const auto& [site, at] : counters.sites) {
    Json json = {{"file", site.file},
                 {"line", site.line},
                 {"space", to_string(site.space)},
                 {"access", to_string(site.access)}};
    json.update(access_json(at));
    json["visits"] = log.visits(site);
    sites.push_back(std::move(json));
  }
  Json occupancy;
  if (const auto found = counters.occupancy.find("9.0"); found != counters.occupancy.end()) {
    const auto& at = found->second;
    occupancy = {{"registers", at.registers}, {"warps", at.warps}, {"max_warps", at.max_warps}};
  }
  return {{"name", entry.name},
          {"blocks", counters.blocks},
          {"block_threads", counters.block_threads},
          {"shared_bytes", counters.shared_bytes},
          {"barriers", counters.barriers},
          {"occupancy", std::move(occupancy)},
          {"global", total_json(counters, Space::Global)},
          {"shared", total_json(counters, Space::Shared)},
          {"sites", std::move(sites)}};
}

/// Every kernel that takes the problem, the slowest step of a ladder first.
Json problem_json(const Problem& problem) {
  Json kernels = Json::array();
  std::vector<KernelEntry> entries;
  for (const auto& entry : EmulatedDevice(options("counted")).kernels())
    if (entry.op == problem.op->name()) entries.push_back(entry);
  std::ranges::reverse(entries);
  for (const auto& entry : entries) {
    EmulatedDevice device(options("counted"));
    Run run(device, problem);
    if (!entry.accepts(run.query()).accepted) continue;
    Log log(run.arrays());
    device.tell(&log);
    run.launch(entry);
    // A kernel of the table is one launch here, under its own name or another.
    kernels.push_back(kernel_json(entry, device.kernel_counters().begin()->second, log));
  }
  return {{"name", problem.name}, {"op", problem.op->name()}, {"kernels", std::move(kernels)}};
}

Problem product(std::int64_t size) {
  return {.name = fmt::format("product of {0} × {0}", size),
          .op = make_op(MatMul{}),
          .shapes = {{size, size}, {size, size}},
          .names = {"a", "b", "y"}};
}

Problem convolution() {
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  return {.name = "convolution of a U-Net S: 8 → 8 channels, 16 × 16",
          .op = make_op(conv),
          .shapes = {{1, 8, 16, 16}, {8, 8, 3, 3}},
          .names = {"x", "w", "y"}};
}

/// The only request of a pattern.
class PatternLog : public cuda::emulation::RequestWatcher {
 public:
  explicit PatternLog(Space space) : space_(space) {}
  void asked(const RequestPlace& place, const Request& request) override {
    if (place.access != Access::Load || place.space != space_) return;
    json_ = request_json(place, request, {}, "a table");
    json_["of"] = space_ == Space::Global ? "an array" : "shared memory";
  }
  const Json& json() const { return json_; }

 private:
  Space space_;
  Json json_;
};

Json patterns_json() {
  Json list = Json::array();
  EmulatedDevice device(options("counted"));
  for (const auto space : {Space::Global, Space::Shared}) {
    for (const int floats : {1, 2, 4}) {
      for (std::int64_t stride = 0; stride <= 33; ++stride) {
        for (const std::int64_t first : {0, 1, 3}) {
          const cuda::counted::AccessPattern pattern = {space, floats, stride * floats,
                                                        first * floats};
          PatternLog log(space);
          device.tell(&log);
          device.submit(0, [&](Stream* stream) {
            run_access_pattern(*static_cast<EmulatedStream*>(stream), pattern);
          });
          device.tell(nullptr);
          Json json = {{"space", to_string(space)},
                       {"floats", floats},
                       {"stride", stride},
                       {"first", first}};
          json.update(log.json());
          list.push_back(std::move(json));
        }
      }
    }
  }
  return list;
}

Json mistakes_json() {
  // 24 is no multiple of a tile, so that the lessons about edges fail, too.
  const auto problem = product(24);
  Json list = Json::array();
  for (const auto& entry : EmulatedDevice(options("lessons")).kernels()) {
    EmulatedDevice device(options("lessons"));
    Run run(device, problem);
    try {
      run.launch(entry);
    } catch (const KernelFault& fault) {
      const auto& [kernel, file, line, block, thread] = fault.place();
      list.push_back({{"name", entry.name},
                      {"kind", to_string(fault.kind())},
                      {"file", file},
                      {"line", line},
                      {"block", index_json(block.x, block.y, block.z)},
                      {"thread", index_json(thread.x, thread.y, thread.z)},
                      {"reason", fault.reason()}});
    }
  }
  return list;
}

struct EmbeddedSource {
  std::string_view name, text;
};

Json sources_json() {
  static const std::vector<EmbeddedSource> sources = {
#include "gpu_sources.inc"
  };
  Json json = Json::object();
  for (const auto& [name, text] : sources) json[std::string(name)] = text;
  return json;
}

}  // namespace

Json record_gpu() {
  Json problems = Json::array();
  for (const auto& problem : {product(64), product(61), convolution()})
    problems.push_back(problem_json(problem));
  return {{"problems", std::move(problems)},
          {"patterns", patterns_json()},
          {"mistakes", mistakes_json()},
          {"sources", sources_json()}};
}

}  // namespace triptych::web
