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
#include "tests/conformance/exclusions.h"

namespace triptych::conformance {
namespace {

struct Subject {
  std::string backend;
  int threads;
  std::string machine;  ///< of a simulated array, or the mode of an emulated GPU

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

/// True when the backend is in TRIPTYCH_TEST_BACKENDS, a list with commas, or that is not set.
bool is_asked(const std::string& name) {
  const char* asked = std::getenv("TRIPTYCH_TEST_BACKENDS");
  return asked == nullptr || fmt::format(",{},", asked).find("," + name + ",") != std::string::npos;
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

/// True for an operator without products whose kernels are those of float32: the contract is about
/// products.
bool repeats_f32(const OpCase& test, const std::vector<Tensor>& inputs, const Subject& subject,
                 Contract contract) {
  const bool may_differ = contract == Contract::F32 || contract == Contract::Bf16Exact;
  if (has_all_cases() || may_differ || !test.op->multiplicands().empty()) return false;
  auto& device = device_of(subject);
  const auto kernels = accepting_kernels(test, inputs, device, contract);
  return !kernels.empty() && kernels == accepting_kernels(test, inputs, device, Contract::F32);
}

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

TEST_P(OnEveryBackend, is_within_the_bound_and_has_the_same_bits_under_bf16_exact) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  const auto references = to_references(inputs);
  for (const auto contract : contracts_of(*test.op)) {
    const auto expected = run_on_reference(*test.op, references, contract);
    const auto allowed = tolerances(*test.op, references, expected, contract);
    SameBits bits;
    for (const auto& subject : subjects()) {
      if (repeats_f32(test, inputs, subject, contract)) continue;
      SCOPED_TRACE(fmt::format("{} {} {} threads, {}", subject.backend, subject.machine,
                               subject.threads, to_string(contract)));
      const auto outputs = run_or_skip(test, inputs, subject, contract);
      if (contract == Contract::Bf16Exact) {
        for (const auto& output : outputs) EXPECT_TRUE(has_one_nan(output));
        bits.expect(outputs);
      }
      std::string difference;
      for (std::size_t i = 0; i < outputs.size() && difference.empty(); ++i) {
        difference = first_difference(outputs[i], expected[i], allowed[i]);
        if (!difference.empty()) difference = fmt::format("output {}, {}", i, difference);
      }
      const auto* expected_failure =
          find_exclusion(expected_failures(), subject.name(), test, contract);
      if (expected_failure == nullptr) {
        EXPECT_EQ(difference, "");
      } else {
        EXPECT_NE(difference, "") << "passes, but is listed: " << expected_failure->reason;
      }
    }
  }
}

enum class Kernels { All, NotTaken };

/// True where a plan takes the kernel, so that a run without a kernel's name has shown its outputs.
bool is_taken(const KernelEntry* kernel, const std::vector<const KernelEntry*>& accepting) {
  return kernel == accepting.front() && kernel->role == KernelRole::Own && kernel->worth == nullptr;
}

/// The outputs by each kernel that accepts, those that a table holds after the first one, too: the
/// steps of the teaching ladders. Only a library may refuse a query that its entry accepts.
void for_each_kernel(const OpCase& test, const std::vector<Tensor>& inputs, const Subject& subject,
                     Contract contract, Kernels kernels,
                     const std::function<void(const std::vector<Tensor>&, Accuracy)>& judge) {
  auto& device = device_of(subject);
  const auto accepting = accepting_kernels(test, inputs, device, contract);
  for (const auto* kernel : accepting) {
    if (kernels == Kernels::NotTaken && is_taken(kernel, accepting)) continue;
    const std::string name(kernel->name);
    SCOPED_TRACE(fmt::format("{} {}, kernel {}, {}", subject.backend, subject.machine, name,
                             to_string(contract)));
    try {
      judge(run_on_device(test, inputs, device, contract, host_of(subject), name),
            kernel->accuracy);
    } catch (const UnsupportedError& error) {
      EXPECT_EQ(kernel->role, KernelRole::Library) << error.what();
    }
  }
}

TEST_P(OnEveryBackend, has_the_same_bits_by_every_kernel) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  SameBits bits;
  for (const auto& subject : subjects()) {
    for_each_kernel(test, inputs, subject, Contract::Bf16Exact, Kernels::All,
                    [&](const auto& outputs, Accuracy) { bits.expect(outputs); });
  }
}

/// The CPU with the most threads of its subjects stands for the others: the test above compares
/// their bits. Checking each access of large products takes most of the time, and finds in smaller
/// ones, by the same kernels, what it finds in them.
bool stands_for_others(const Subject& subject, const OpCase& test) {
  if (subject.machine == "checked") return !test.name.starts_with("large_transposes");
  return subject.backend != "cpu" || subject.threads == 3;
}

/// Libraries and tensor cores promise no bits, but the contract's bound.
TEST_P(OnEveryBackend, is_within_the_bound_by_every_kernel) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  const auto references = to_references(inputs);
  for (const auto contract : {Contract::F32, Contract::Bf16}) {
    const auto expected = run_on_reference(*test.op, references, contract);
    const auto allowed = tolerances(*test.op, references, expected, contract);
    const auto rounded =
        tolerances(*test.op, references, expected, contract, Accuracy::RoundedResult);
    const auto judge = [&](const std::vector<Tensor>& outputs, Accuracy accuracy) {
      const auto& bounds = accuracy == Accuracy::RoundedResult ? rounded : allowed;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(first_difference(outputs[i], expected[i], bounds[i]), "") << "output " << i;
      }
    };
    for (const auto& subject : subjects()) {
      if (!has_all_cases() && !stands_for_others(subject, test)) continue;
      const auto kernels = has_all_cases() ? Kernels::All : Kernels::NotTaken;
      for_each_kernel(test, inputs, subject, contract, kernels, judge);
    }
  }
}

}  // namespace
}  // namespace triptych::conformance
