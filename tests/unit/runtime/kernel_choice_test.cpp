// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_choice.h"

#include <gmock/gmock.h>

#include "core/ops/unary.h"
#include "core/runtime/plan.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych::choice_tests {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace testing_device;

using Plain = ReferenceKernel<true>;

/// Accepts queries that it cannot prepare.
struct Boastful : Plain {
  Boastful(const KernelQuery& query, Device& device) : Plain(query, device) {
    throw UnsupportedError("no engine");
  }
};

/// Computes three times.
struct Slow : Plain {
  using Plain::Plain;
  void run(const KernelArgs& args) override {
    for (int i = 0; i < 3; ++i) Plain::run(args);
  }
};

/// One element is wrong.
struct Wrong : Plain {
  using Plain::Plain;
  void run(const KernelArgs& args) override {
    Plain::run(args);
    args.out<float>(0)[1] += 0.5F;
  }
};

/// Leaves the last element as it was.
struct Short : Plain {
  Short(const KernelQuery& query, Device& device)
      : Plain(query, device), last_(query.outputs[0].spec.shape.elements() - 1) {}
  void run(const KernelArgs& args) override {
    const float before = args.out<float>(0)[last_];
    Plain::run(args);
    args.out<float>(0)[last_] = before;
  }

 private:
  std::int64_t last_;
};

/// Fails when it runs.
struct Failing : Plain {
  using Plain::Plain;
  void run(const KernelArgs&) override { throw DeviceError("misaligned address"); }
};

/// Does not survive a kernel that fails.
struct Frail : ReferenceDevice {
  using ReferenceDevice::ReferenceDevice;
  void submit(int segment, const std::function<void(Stream*)>& enqueue) override {
    try {
      ReferenceDevice::submit(segment, enqueue);
    } catch (const DeviceError&) {
      dead_ = true;
      throw;
    }
  }
  void synchronize() override {
    if (dead_) throw DeviceError("illegal address");
  }

 private:
  bool dead_ = false;
};

/// Tells the times that a test has written down.
struct FakeStopwatch : KernelStopwatch {
  std::map<std::string_view, double> seconds;
  std::vector<std::string_view> asked;

  std::vector<KernelTrial> time(std::span<const KernelEntry* const> candidates, const ChoiceQuery&,
                                Device&) override {
    std::vector<KernelTrial> trials;
    for (const auto* entry : candidates) {
      asked.push_back(entry->name);
      const auto found = seconds.find(entry->name);
      trials.push_back(found == seconds.end() ? KernelTrial{.problem = "no engine"}
                                              : KernelTrial{.seconds = found->second});
    }
    return trials;
  }
};

Graph relu_graph(std::int64_t columns = 3) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, columns}});
  graph.mark_output("y", graph.add_node(make_op(Unary(UnaryKind::Relu)), std::vector{x}, "act")[0]);
  return graph;
}

class KernelChoiceTest : public testing::Test {
 protected:
  NodePlacement place_relu(const Graph& graph, PlacementOptions options = {}) {
    options.chooser = &chooser;
    Device* const devices[] = {&device};
    return place(graph, devices, options)[0];
  }
  NodePlacement place_relu() { return place_relu(relu_graph()); }

  ReferenceDevice device{
      "toy:0",
      {kernel_entry<Plain>("Relu", "own"), kernel_entry<Plain>("Relu", "lib", KernelRole::Library),
       kernel_entry<Plain>("Relu", "step", KernelRole::Lesson)}};
  FakeStopwatch stopwatch;
  MemoryCache cache;
  MeasuringChooser chooser{stopwatch, cache};
};

TEST_F(KernelChoiceTest, the_fastest_is_taken_and_the_times_are_told) {
  stopwatch.seconds = {{"own", 3e-6}, {"lib", 2e-6}, {"step", 1e-6}};
  const auto placement = place_relu();
  EXPECT_EQ(placement.kernel->name, "lib");
  EXPECT_EQ(placement.choice, "measured now: own 3 us, lib 2 us");
  EXPECT_THAT(stopwatch.asked, ElementsAre("own", "lib"));
}

TEST_F(KernelChoiceTest, of_equal_ones_the_tables_first_is_taken) {
  stopwatch.seconds = {{"own", 2e-6}, {"lib", 2e-6}};
  EXPECT_EQ(place_relu().kernel->name, "own");
}

TEST_F(KernelChoiceTest, each_shape_and_contract_is_measured_once) {
  stopwatch.seconds = {{"own", 3e-6}, {"lib", 2e-6}};
  place_relu();
  EXPECT_EQ(place_relu().choice, "measured before: own 3 us, lib 2 us");
  EXPECT_EQ(stopwatch.asked.size(), 2U);
  place_relu(relu_graph(4));
  EXPECT_EQ(stopwatch.asked.size(), 4U);
  place_relu(relu_graph(), {.contract = Contract::Bf16});
  EXPECT_EQ(stopwatch.asked.size(), 6U);
}

TEST_F(KernelChoiceTest, what_was_kept_outlives_the_chooser) {
  stopwatch.seconds = {{"own", 3e-6}, {"lib", 2e-6}};
  place_relu();
  FakeStopwatch never;
  MeasuringChooser later(never, cache);
  Device* const devices[] = {&device};
  EXPECT_EQ(place(relu_graph(), devices, {.chooser = &later})[0].kernel->name, "lib");
}

TEST_F(KernelChoiceTest, what_is_damaged_is_measured_again) {
  stopwatch.seconds = {{"own", 3e-6}, {"lib", 2e-6}};
  const auto graph = relu_graph();
  const PlacementOptions options;
  const NodeQuery query(graph, graph.nodes()[0], options);
  const KernelEntry* candidates[] = {&device.kernels()[0], &device.kernels()[1]};
  const auto key = measurement_key({query}, device, candidates);
  for (const char* text : {"", "{", "[]", "{\"own\": 1}", "{\"own\": 1, \"lib\": [2]}"}) {
    cache.insert(key, text);
    EXPECT_EQ(place_relu().choice, "measured now: own 3 us, lib 2 us") << text;
  }
}

TEST_F(KernelChoiceTest, a_kernel_that_cannot_be_prepared_is_passed_over) {
  stopwatch.seconds = {{"own", 3e-6}};
  const auto placement = place_relu();
  EXPECT_EQ(placement.kernel->name, "own");
  EXPECT_EQ(placement.choice, "measured now: own 3 us, lib: no engine");
  EXPECT_EQ(place_relu().choice, "measured before: own 3 us, lib: no engine");
}

TEST_F(KernelChoiceTest, where_none_can_be_prepared_all_reasons_are_told) {
  try {
    place_relu();
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("own: no engine"), HasSubstr("lib: no engine")));
  }
}

TEST_F(KernelChoiceTest, own_and_library_force_where_there_is_a_choice) {
  stopwatch.seconds = {{"own", 3e-6}, {"lib", 2e-6}};
  EXPECT_EQ(place_relu(relu_graph(), {.forced = "own"}).kernel->name, "own");
  EXPECT_EQ(place_relu(relu_graph(), {.forced = "library"}).kernel->name, "lib");
  EXPECT_EQ(place_relu(relu_graph(), {.forced = "step"}).kernel->name, "step");
  EXPECT_TRUE(stopwatch.asked.empty());
}

TEST_F(KernelChoiceTest, a_name_that_forces_nothing_is_an_error) {
  try {
    place_relu(relu_graph(), {.forced = "stap"});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"stap\""), HasSubstr("lib, library, own, step")));
  }
}

TEST(KernelChoice, library_is_an_error_only_for_operators_that_have_one) {
  struct Refusing : Plain {
    using Plain::Plain;
    static Verdict accepts(const KernelQuery&) { return Verdict::no("not this shape"); }
  };
  Graph graph = relu_graph();
  const auto sigmoid = make_op(Unary(UnaryKind::Sigmoid));
  graph.add_node(sigmoid, std::vector{graph.outputs()[0].value}, "gate");
  ReferenceDevice without("toy", {kernel_entry<Plain>("Relu", "own"),
                                  kernel_entry<Plain>("Relu", "lib", KernelRole::Library),
                                  kernel_entry<Plain>("Sigmoid", "own")});
  Device* const devices[] = {&without};
  const auto placements = place(graph, devices, {.forced = "library"});
  EXPECT_EQ(placements[0].kernel->name, "lib");
  EXPECT_EQ(placements[1].kernel->name, "own");
  ReferenceDevice refusing("toy", {kernel_entry<Plain>("Relu", "own"),
                                   kernel_entry<Refusing>("Relu", "lib", KernelRole::Library),
                                   kernel_entry<Plain>("Sigmoid", "own")});
  Device* const others[] = {&refusing};
  EXPECT_THROW(place(graph, others, {.forced = "library"}), UnsupportedError);
}

TEST(KernelChoice, library_is_an_error_where_no_operator_has_one) {
  ReferenceDevice device("toy", {kernel_entry<Plain>("Relu", "own")});
  Device* const devices[] = {&device};
  EXPECT_THROW(place(relu_graph(), devices, {.forced = "library"}), InvalidArgument);
}

TEST(KernelChoice, lessons_run_only_where_they_are_forced) {
  ReferenceDevice device("toy", {kernel_entry<Plain>("Relu", "step", KernelRole::Lesson),
                                 kernel_entry<Plain>("Relu", "own")});
  Device* const devices[] = {&device};
  EXPECT_EQ(place(relu_graph(), devices, {})[0].kernel->name, "own");
  EXPECT_EQ(place(relu_graph(), devices, {.forced = "step"})[0].kernel->name, "step");
}

// On the reference device every run of a kernel takes one second of its clock.
TEST(KernelChoice, a_devices_clock_tells_a_slow_kernel_and_all_memory_is_given_back) {
  ReferenceDevice device(
      "toy:0", {kernel_entry<Slow>("Relu", "slow"), kernel_entry<Plain>("Relu", "quick")});
  Device* const devices[] = {&device};
  DeviceStopwatch stopwatch;
  MemoryCache cache;
  MeasuringChooser chooser(stopwatch, cache);
  const auto placement = place(relu_graph(), devices, {.chooser = &chooser})[0];
  EXPECT_EQ(placement.kernel->name, "quick");
  EXPECT_THAT(placement.choice, HasSubstr("slow 3e+06 us, quick 1e+06 us"));
  EXPECT_EQ(device.allocated(), 0U);
  EXPECT_TRUE(device.submitted.empty());
}

/// Relu on a device with these kernels, chosen by trials.
template <class Device = ReferenceDevice>
struct Trial {
  explicit Trial(std::vector<KernelEntry> kernels) : device("toy:0", std::move(kernels)) {}
  NodePlacement place_relu() {
    triptych::Device* const devices[] = {&device};
    return place(relu_graph(), devices, {.chooser = &chooser})[0];
  }

  Device device;
  DeviceStopwatch stopwatch;
  MemoryCache cache;
  std::vector<std::string> told;
  MeasuringChooser chooser{stopwatch, cache,
                           [&](const std::string& warning) { told.push_back(warning); }};
};

/// Three runs, or one where both operands are stored channels last.
struct Last : Plain {
  Last(const KernelQuery& query, Device& device)
      : Plain(query, device),
        device_(dynamic_cast<ReferenceDevice&>(device)),
        x_(query.inputs[0]),
        y_(query.outputs[0]) {}
  static ChannelsLastOperands channels_last(const KernelQuery&) {
    return {.inputs = {true}, .output = true, .pad = 1};
  }
  void run(const KernelArgs& args) override {
    if (x_.channels_last && y_.channels_last) {
      ++device_.kernels_run;
      device_.require_owned(args.inputs[0], bytes_of(x_.spec.shape, *x_.channels_last));
      device_.require_owned(args.outputs[0], bytes_of(y_.spec.shape, *y_.channels_last));
    } else if (!x_.channels_last && !y_.channels_last) {
      for (int i = 0; i < 3; ++i) Plain::run(args);
    } else {
      device_.kernels_run += 3;
    }
  }

 private:
  ReferenceDevice& device_;
  Operand x_, y_;
};

TEST(KernelChoice, kernels_are_timed_with_operands_as_the_plan_may_store_them) {
  auto last = kernel_entry<Last>("Relu", "last");
  last.channels_last = &Last::channels_last;
  ReferenceDevice device("toy:0", {last, kernel_entry<Slow>("Relu", "planes")});
  Graph graph;
  auto value = graph.add_input("x", {DType::F32, {1, 2, 3, 3}});
  for (const char* name : {"first", "second", "third"}) {
    value = graph.add_node(make_op(Unary(UnaryKind::Relu)), std::vector{value}, name)[0];
  }
  graph.mark_output("y", value);
  DeviceStopwatch stopwatch;
  MemoryCache cache;
  MeasuringChooser chooser(stopwatch, cache);
  const auto choices = [&](bool channels_last) {
    Device* const devices[] = {&device};
    std::vector<std::string> texts;
    for (const auto& placement :
         place(graph, devices, {.chooser = &chooser, .channels_last = channels_last})) {
      texts.push_back(placement.choice);
    }
    return texts;
  };
  // Inputs and outputs of the graph stay planes.
  const auto slow = HasSubstr("last 3e+06 us, planes 3e+06 us");
  const auto quick = HasSubstr("last 1e+06 us, planes 3e+06 us");
  EXPECT_THAT(choices(true), ElementsAre(slow, quick, slow));
  EXPECT_THAT(choices(false), ElementsAre(slow, slow, slow));
  EXPECT_EQ(device.allocated(), 0U);
}

TEST(KernelChoice, a_kernel_with_other_values_is_left_out_and_told_of_each_time) {
  // Though it is the quickest and stands first: the simplest of our own, the last, is trusted.
  Trial<> trial({kernel_entry<Wrong>("Relu", "wrong"), kernel_entry<Slow>("Relu", "simple"),
                 kernel_entry<Short>("Relu", "short", KernelRole::Library)});
  for (std::size_t time = 1; time <= 2; ++time) {
    const auto placement = trial.place_relu();
    EXPECT_EQ(placement.kernel->name, "simple");
    EXPECT_THAT(placement.choice,
                AllOf(HasSubstr("measured now: wrong: computes something else than simple: "
                                "output 0: element 1 of the sample is "),
                      HasSubstr("short: computes something else than simple: output 0: element 5 "
                                "of the sample is -nan instead of ")));
    EXPECT_THAT(trial.told, testing::SizeIs(2 * time));
  }
  EXPECT_THAT(trial.told[0], HasSubstr("Relu: the kernel wrong is left out: computes something"));
  EXPECT_EQ(trial.device.allocated(), 0U);
}

TEST(KernelChoice, a_kernel_that_fails_is_a_reason_and_tried_again_another_time) {
  Trial<> trial({kernel_entry<Plain>("Relu", "own"),
                 kernel_entry<Failing>("Relu", "lib", KernelRole::Library)});
  for (int time = 0; time < 2; ++time) {
    const auto placement = trial.place_relu();
    EXPECT_EQ(placement.kernel->name, "own");
    EXPECT_THAT(placement.choice,
                AllOf(HasSubstr("measured now"), HasSubstr("lib: misaligned address")));
  }
  EXPECT_TRUE(trial.told.empty());
  EXPECT_EQ(trial.device.allocated(), 0U);
  EXPECT_TRUE(trial.device.submitted.empty());
}

TEST(KernelChoice, a_kernel_that_breaks_the_device_is_named) {
  Trial<Frail> trial({kernel_entry<Plain>("Relu", "own"), kernel_entry<Failing>("Relu", "simple")});
  EXPECT_THAT(message_of<DeviceError>([&] { trial.place_relu(); }),
              AllOf(HasSubstr("Relu: the kernel simple failed (misaligned address)"),
                    HasSubstr("unusable (illegal address)"), HasSubstr("the option choice table")));
}

TEST(KernelChoice, where_none_can_run_because_one_failed_the_device_is_to_blame) {
  Trial<> trial({kernel_entry<Failing>("Relu", "own"),
                 kernel_entry<Boastful>("Relu", "lib", KernelRole::Library)});
  EXPECT_THAT(message_of<DeviceError>([&] { trial.place_relu(); }),
              AllOf(HasSubstr("own: misaligned address"), HasSubstr("lib: no engine")));
}

TEST(KernelChoice, a_plan_tells_why_and_names_the_node_that_cannot_be_prepared) {
  ReferenceDevice device("toy:0", {kernel_entry<Plain>("Relu", "own"),
                                   kernel_entry<Boastful>("Relu", "lib", KernelRole::Library)});
  DeviceStopwatch stopwatch;
  MemoryCache cache;
  MeasuringChooser chooser(stopwatch, cache);
  const auto plan = make_plan(relu_graph(), {&device}, {.placement = {.chooser = &chooser}});
  EXPECT_EQ(plan.steps[0].entry->name, "own");
  EXPECT_THAT(plan.steps[0].choice, HasSubstr("lib: no engine"));
  try {
    make_plan(relu_graph(), {&device}, {.placement = {.forced = "library"}});
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("node \"act\" cannot run with the kernel \"lib\""));
  }
}

}  // namespace
}  // namespace triptych::choice_tests
