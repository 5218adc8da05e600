// An index out of range is reported with its node on every backend, for any number of indices, and
// the next run is not affected.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>

#include "backends/all_backends.h"
#include "core/ops/gather.h"
#include "core/runtime/executor.h"

namespace triptych::conformance {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kRows = 60, kColumns = 5;

struct IndexCase {
  std::string backend;
  std::map<std::string, std::string> extra;
  std::int64_t count;
  DType dtype;
  bool gradient;

  friend void PrintTo(const IndexCase& test, std::ostream* out) {
    *out << test.backend << " " << test.count;
  }
};

std::vector<IndexCase> index_cases() {
  std::vector<IndexCase> cases;
  for (const Backend* backend : all_backends()) {
    if (!backend->availability().available) continue;
    const std::string name(backend->name());
    std::vector<std::map<std::string, std::string>> modes = {{}};
    if (name == "cuda-emulated") modes.push_back({{"emulation", "checked"}});
    for (const auto& extra : modes) {
      for (const std::int64_t count : {7, 3000}) {
        cases.push_back({name, extra, count, DType::I64, false});
        cases.push_back({name, extra, count, DType::I32, true});
      }
    }
  }
  return cases;
}

Tensor indices(const IndexCase& test, std::int64_t at, double value) {
  std::vector<double> values(static_cast<std::size_t>(test.count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % kRows) - 30;
  values[static_cast<std::size_t>(at)] = value;
  return from_doubles({test.dtype, {test.count}}, values);
}

class IndexFault : public testing::TestWithParam<IndexCase> {
 protected:
  IndexFault() {
    const auto& test = GetParam();
    devices_.push_back(open_device(test.backend, {.threads = 2, .extra = test.extra}));
    const auto host = find_backend(test.backend).host();
    if (!host.empty()) devices_.push_back(open_device(std::string(host), {.threads = 2}));
    Graph graph;
    const auto x =
        graph.add_input("x", {DType::F32, {test.gradient ? test.count : kRows, kColumns}});
    const auto index = graph.add_input("index", {test.dtype, {test.count}});
    GatherGradient back;
    back.input_shape = {kRows, kColumns};
    const auto op = test.gradient ? make_op(back) : make_op(Gather{});
    graph.mark_output("y", graph.add_node(op, std::vector{x, index}, "table").front());
    states_ = std::make_unique<StateStore>(*devices_.front());
    std::vector<Device*> devices;
    for (const auto& device : devices_) devices.push_back(device.get());
    executor_ = std::make_unique<Executor>(make_plan(std::move(graph), devices), *states_);
    executor_->set_input("x", Tensor(executor_->plan().graph.spec(x)));
  }

  void expect_refused(std::int64_t at, std::int64_t value) {
    executor_->set_input("index", indices(GetParam(), at, static_cast<double>(value)));
    EXPECT_THAT([&] { executor_->run(); },
                testing::ThrowsMessage<InvalidArgument>(
                    HasSubstr(fmt::format("node \"table\" (Gather{}): index {} at position {} is "
                                          "outside [-60, 59]",
                                          GetParam().gradient ? "Gradient" : "", value, at))));
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<StateStore> states_;
  std::unique_ptr<Executor> executor_;
};

TEST_P(IndexFault, is_reported_with_node_index_and_position) {
  const auto last = GetParam().count - 1;
  expect_refused(3, kRows);
  expect_refused(last, -kRows - 1);
  expect_refused(0, 2147483647);
  executor_->set_input("index", indices(GetParam(), last, kRows - 1));
  EXPECT_NO_THROW(executor_->run());
  EXPECT_THROW(
      (executor_->set_input("index", indices(GetParam(), 5, -61)), executor_->run_profiled()),
      InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, IndexFault, testing::ValuesIn(index_cases()),
                         [](const testing::TestParamInfo<IndexCase>& test) {
                           return fmt::format("{}", test.index);
                         });

}  // namespace
}  // namespace triptych::conformance
