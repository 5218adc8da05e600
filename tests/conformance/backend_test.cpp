// Every case of every operator on every available backend, under every contract, against
// the operator's float64 reference, and the promise of identical bits.
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

TEST_P(OnEveryBackend, is_within_the_bound_of_the_reference) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  const auto references = to_references(inputs);
  for (const auto contract : contracts_of(*test.op)) {
    const auto expected = run_on_reference(*test.op, references, contract);
    const auto allowed = tolerances(*test.op, references, expected, contract);
    for (const auto& subject : subjects()) {
      SCOPED_TRACE(fmt::format("{} {} {} threads, {}", subject.backend, subject.machine,
                               subject.threads, to_string(contract)));
      const auto outputs = run_or_skip(test, inputs, subject, contract);
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

/// True when every NaN is the one that all processors agree on. (Those of the inputs are.)
bool has_one_nan(const Tensor& tensor) {
  return tensor.dtype() != DType::F32 || std::ranges::all_of(tensor.as<float>(), [](float value) {
           return !std::isnan(value) || std::bit_cast<std::uint32_t>(value) == 0x7FC00000;
         });
}

TEST_P(OnEveryBackend, has_the_same_bits_everywhere_under_bf16_exact) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  std::vector<Tensor> first;
  for (const auto& subject : subjects()) {
    SCOPED_TRACE(
        fmt::format("{} {} {} threads", subject.backend, subject.machine, subject.threads));
    auto outputs = run_or_skip(test, inputs, subject, Contract::Bf16Exact);
    if (outputs.empty()) continue;
    for (const auto& output : outputs) EXPECT_TRUE(has_one_nan(output));
    if (first.empty()) {
      first = std::move(outputs);
      continue;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(outputs[i].bytes(), first[i].bytes())) << "output " << i;
    }
  }
}

/// The outputs by each kernel that accepts, those that a table holds after the first one, too: the
/// steps of the teaching ladders. Only a library may refuse a query that its entry accepts.
void for_each_kernel(const OpCase& test, const std::vector<Tensor>& inputs, const Subject& subject,
                     Contract contract,
                     const std::function<void(const std::vector<Tensor>&)>& judge) {
  auto& device = device_of(subject);
  for (const auto* kernel : accepting_kernels(test, inputs, device, contract)) {
    const std::string name(kernel->name);
    SCOPED_TRACE(fmt::format("{} {}, kernel {}, {}", subject.backend, subject.machine, name,
                             to_string(contract)));
    try {
      judge(run_on_device(test, inputs, device, contract, host_of(subject), name));
    } catch (const UnsupportedError& error) {
      EXPECT_EQ(kernel->role, KernelRole::Library) << error.what();
    }
  }
}

TEST_P(OnEveryBackend, has_the_same_bits_by_every_kernel) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  std::vector<Tensor> first;
  for (const auto& subject : subjects()) {
    for_each_kernel(test, inputs, subject, Contract::Bf16Exact, [&](const auto& outputs) {
      if (first.empty()) {
        for (const auto& output : outputs) first.push_back(output.clone());
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(outputs[i].bytes(), first[i].bytes())) << "output " << i;
      }
    });
  }
}

/// Libraries and tensor cores promise no bits, but the contract's bound.
TEST_P(OnEveryBackend, is_within_the_bound_by_every_kernel) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  const auto references = to_references(inputs);
  for (const auto contract : {Contract::F32, Contract::Bf16}) {
    const auto expected = run_on_reference(*test.op, references, contract);
    const auto allowed = tolerances(*test.op, references, expected, contract);
    for (const auto& subject : subjects()) {
      for_each_kernel(test, inputs, subject, contract, [&](const auto& outputs) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(first_difference(outputs[i], expected[i], allowed[i]), "") << "output " << i;
        }
      });
    }
  }
}

}  // namespace
}  // namespace triptych::conformance
