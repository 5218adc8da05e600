// Every case of every operator on every available backend, under every contract, against
// the operator's float64 reference, and the promise of identical bits. TRIPTYCH_ALL_CASES=1, as in
// the part `cases`, also repeats kernels that another contract or number of threads takes here.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include "backends/all_backends.h"
#include "experiments/check/case_runner.h"
#include "tests/conformance/asked_backends.h"
#include "tests/conformance/exclusions.h"

namespace triptych::conformance {
namespace {

struct Subject {
  std::string backend;
  int threads;
  std::string machine;  ///< of a simulated array, or the mode of an emulated GPU

  bool is_checked() const { return machine == "checked"; }
  /// As the exclusion lists call it.
  std::string name() const { return machine.ends_with("-int8") ? backend + "-int8" : backend; }
  DeviceOptions options() const {
    if (machine.empty()) return {.threads = threads};
    const char* option = backend == "cuda-emulated" ? "emulation" : "machine";
    return {.threads = threads, .extra = {{option, machine}}};
  }
};

bool has_all_cases() {
  static const bool all = std::getenv("TRIPTYCH_ALL_CASES") != nullptr;
  return all;
}

/// Every available backend. The CPU with several thread counts, for the bits must not depend on
/// them, the emulated GPU also with every access checked, the systolic array with several sizes.
std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const Backend* backend : all_backends()) {
    if (!backend->availability().available) continue;
    const std::string name(backend->name());
    if (!is_asked(name)) continue;
    if (name == "cpu") {
      for (const int threads : {1, 2, 3}) list.push_back({name, threads, ""});
    } else if (name == "cuda-emulated") {
      for (const char* mode : {"plain", "checked"}) list.push_back({name, 2, mode});
    } else if (name == "systolic") {
      constexpr const char* kNoPowersOfTwo = R"({"name": "12x20", "rows": 12, "columns": 20})";
      constexpr const char* kVectors =
          R"({"name": "12x20-vector", "rows": 12, "columns": 20, "vector_rows": 2048})";
      for (const char* machine :
           {"mmu4", "mmu4-vector", "mmu16", kNoPowersOfTwo, kVectors, "mmu16-int8"})
        list.push_back({name, 0, machine});
    } else {
      list.push_back({name, 0, ""});
    }
  }
  return list;
}

Device& device_of(const Subject& subject) {
  static std::map<std::string, std::unique_ptr<Device>> devices;
  auto& device =
      devices[fmt::format("{}_{}_{}", subject.backend, subject.threads, subject.machine)];
  if (!device) device = open_device(subject.backend, subject.options());
  return *device;
}

Device* host_of(const Subject& subject) {
  const std::string host(find_backend(subject.backend).host());
  return host.empty() ? nullptr : &device_of({host, 1, ""});
}

/// int8 is for operators that multiply integers, or unsupported.
std::vector<Contract> contracts_of(const Op& op) {
  std::vector<Contract> contracts = {Contract::F32, Contract::Bf16, Contract::Bf16Exact};
  if (op.multiplicands().empty()) contracts.push_back(Contract::Int8);
  return contracts;
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return fmt::format("{}_{}", info.param.op->name(), info.param.name);
}

class OnEveryBackend : public testing::TestWithParam<OpCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, OnEveryBackend, testing::ValuesIn(all_cases()), case_name);

/// The outputs, or nothing when the exclusion lists say that the backend cannot run the case.
std::vector<Tensor> run_or_skip(const OpCase& test, const std::vector<Tensor>& inputs,
                                const Subject& subject, Contract contract) {
  const auto* exclusion = find_exclusion(unsupported(), subject.name(), test, contract);
  try {
    auto outputs = run_on_device(test, inputs, device_of(subject), contract, host_of(subject));
    EXPECT_EQ(exclusion, nullptr) << "runs, but is listed as unsupported: " << exclusion->reason;
    return outputs;
  } catch (const UnsupportedError& error) {
    EXPECT_NE(exclusion, nullptr) << error.what();
    return {};
  }
}

struct Expectation {
  std::vector<RefTensor> values;
  std::vector<std::vector<double>> allowed;          ///< differences
  std::vector<std::vector<double>> allowed_rounded;  ///< of kernels that round their results
};

Expectation expectation_of(const Op& op, const std::vector<RefTensor>& inputs, Contract contract) {
  Expectation expected = {run_on_reference(op, inputs, contract), {}, {}};
  expected.allowed = tolerances(op, inputs, expected.values, contract);
  expected.allowed_rounded =
      tolerances(op, inputs, expected.values, contract, Accuracy::RoundedResult);
  return expected;
}

/// The first difference that is not allowed. Empty: none.
std::string difference_from(const Expectation& expected, const std::vector<Tensor>& outputs,
                            Accuracy accuracy = Accuracy::PlainSum) {
  const auto& allowed =
      accuracy == Accuracy::RoundedResult ? expected.allowed_rounded : expected.allowed;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto difference = first_difference(outputs[i], expected.values[i], allowed[i]);
    if (!difference.empty()) return fmt::format("output {}, {}", i, difference);
  }
  return {};
}

/// An operator's case and what is expected of it under bf16-exact.
struct Trial {
  const OpCase& test;
  std::vector<Tensor> inputs = make_inputs(test);
  std::vector<RefTensor> references = to_references(inputs);
  Expectation exact = expectation_of(*test.op, references, Contract::Bf16Exact);

  Expectation expectation(Contract contract) const {
    return contract == Contract::Bf16Exact ? exact : expectation_of(*test.op, references, contract);
  }
  auto kernels(const Subject& subject, Contract contract) const {
    return accepting_kernels(test, inputs, device_of(subject), contract);
  }
  /// True where bf16-exact has shown what the same kernels do under the contract. Those of an
  /// operator without products see no contract. Which bytes a kernel reads and writes depends on
  /// none, and the emulated GPU without checks of accesses shows the values.
  bool repeats_exact(const Subject& subject, Contract contract, const Expectation& expected) const {
    if (contract == Contract::Bf16Exact || has_all_cases()) return false;
    const bool same_values = test.op->multiplicands().empty() && expected.allowed == exact.allowed;
    if (!same_values && !subject.is_checked()) return false;
    const auto accepting = kernels(subject, contract);
    return !accepting.empty() && accepting == kernels(subject, Contract::Bf16Exact);
  }
};

/// True when every NaN is the one that all processors agree on. (Those of the inputs are.)
bool has_one_nan(const Tensor& tensor) {
  return tensor.dtype() != DType::F32 || std::ranges::all_of(tensor.as<float>(), [](float value) {
           return !std::isnan(value) || std::bit_cast<std::uint32_t>(value) == 0x7FC00000;
         });
}

/// Expects the bits of the first outputs that it is given.
class SameBits {
 public:
  void expect(const std::vector<Tensor>& outputs) {
    if (first_.empty()) {
      for (const auto& output : outputs) first_.push_back(output.clone());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(outputs[i].bytes(), first_[i].bytes())) << "output " << i;
    }
  }

 private:
  std::vector<Tensor> first_;
};

/// True where a plan takes the kernel.
bool is_taken(const KernelEntry* kernel, const std::vector<const KernelEntry*>& accepting) {
  return kernel == accepting.front() && kernel->role == KernelRole::Own && kernel->worth == nullptr;
}

/// True where a run without a kernel's name has shown the kernel, or one under bf16-exact has
/// checked its accesses.
bool is_shown(const Trial& trial, const Subject& subject, Contract contract,
              const KernelEntry* kernel) {
  if (has_all_cases()) return false;
  if (is_taken(kernel, trial.kernels(subject, contract))) return true;
  if (!subject.is_checked() || contract == Contract::Bf16Exact) return false;
  const auto exact = trial.kernels(subject, Contract::Bf16Exact);
  return std::ranges::find(exact, kernel) != exact.end();
}

/// The outputs by each kernel that accepts, those that a table holds after the first one, too: the
/// steps of the teaching ladders. Only a library may refuse a query that its entry accepts.
void for_each_kernel(const Trial& trial, const Subject& subject, Contract contract,
                     const std::function<void(const std::vector<Tensor>&, Accuracy)>& judge) {
  for (const auto* kernel : trial.kernels(subject, contract)) {
    if (is_shown(trial, subject, contract, kernel)) continue;
    const std::string name(kernel->name);
    SCOPED_TRACE(fmt::format("{} {}, kernel {}, {}", subject.backend, subject.machine, name,
                             to_string(contract)));
    try {
      judge(run_on_device(trial.test, trial.inputs, device_of(subject), contract, host_of(subject),
                          name),
            kernel->accuracy);
    } catch (const UnsupportedError& error) {
      EXPECT_EQ(kernel->role, KernelRole::Library) << error.what();
    }
  }
}

void expect_in_bound_or_listed(const Trial& trial, const Subject& subject, Contract contract,
                               const std::string& difference) {
  const auto* failure = find_exclusion(expected_failures(), subject.name(), trial.test, contract);
  if (failure == nullptr) {
    EXPECT_EQ(difference, "");
  } else {
    EXPECT_NE(difference, "") << "passes, but is listed: " << failure->reason;
  }
}

TEST_P(OnEveryBackend, is_within_the_bound_and_has_the_same_bits_under_bf16_exact) {
  const Trial trial{GetParam()};
  SameBits bits;
  for (const auto contract : contracts_of(*trial.test.op)) {
    const auto expected = trial.expectation(contract);
    for (const auto& subject : subjects()) {
      if (trial.repeats_exact(subject, contract, expected)) continue;
      SCOPED_TRACE(fmt::format("{} {} {} threads, {}", subject.backend, subject.machine,
                               subject.threads, to_string(contract)));
      const auto outputs = run_or_skip(trial.test, trial.inputs, subject, contract);
      expect_in_bound_or_listed(trial, subject, contract, difference_from(expected, outputs));
      if (contract != Contract::Bf16Exact) continue;
      for (const auto& output : outputs) EXPECT_TRUE(has_one_nan(output));
      bits.expect(outputs);
      for_each_kernel(trial, subject, contract,
                      [&](const auto& same, Accuracy) { bits.expect(same); });
    }
  }
}

/// The CPU with the most threads of its subjects stands for the others: the test above compares
/// their bits. Checking each access of large products takes most of the time, and finds in smaller
/// ones, by the same kernels, what it finds in them.
bool stands_for_others(const Subject& subject, const OpCase& test) {
  if (subject.is_checked()) return !test.name.starts_with("large_transposes");
  return subject.backend != "cpu" || subject.threads == 3;
}

/// Libraries and tensor cores promise no bits, but the contract's bound.
TEST_P(OnEveryBackend, is_within_the_bound_by_every_kernel) {
  const Trial trial{GetParam()};
  for (const auto contract : {Contract::F32, Contract::Bf16}) {
    const auto expected = trial.expectation(contract);
    for (const auto& subject : subjects()) {
      if (!has_all_cases() && !stands_for_others(subject, trial.test)) continue;
      if (trial.repeats_exact(subject, contract, expected)) continue;
      for_each_kernel(trial, subject, contract, [&](const auto& outputs, Accuracy accuracy) {
        EXPECT_EQ(difference_from(expected, outputs, accuracy), "");
      });
    }
  }
}

}  // namespace
}  // namespace triptych::conformance
