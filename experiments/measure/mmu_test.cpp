// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/mmu_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "core/base/error.h"

namespace triptych::measure {
namespace {

/// Element i as a text holds it.
std::uint32_t bits_of(const Tensor& tensor, std::size_t i) {
  switch (tensor.spec().dtype) {
    case DType::I8:
      return static_cast<std::uint32_t>(std::int32_t{tensor.as<std::int8_t>()[i]});
    case DType::I32:
      return static_cast<std::uint32_t>(tensor.as<std::int32_t>()[i]);
    case DType::U8:
      return tensor.as<std::uint8_t>()[i];
    default:
      return std::bit_cast<std::uint32_t>(tensor.as<float>()[i]);
  }
}

std::string shown(DType type, std::uint32_t bits) {
  if (type != DType::F32) return fmt::format("{}", static_cast<std::int32_t>(bits));
  return fmt::format("{} (0x{:08X})", std::bit_cast<float>(bits), bits);
}

std::string first_unexpected(const mmu::DramArray& array, const Tensor& came) {
  const auto type = came.spec().dtype;
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const auto bits = bits_of(came, i);
    if (!array.values[i].any && bits != array.values[i].bits)
      return fmt::format("{} is expected to be {}, came {}", array.element(i),
                         shown(type, array.values[i].bits), shown(type, bits));
  }
  return {};
}

/// Why the text cannot test anything. Empty: it can.
std::string incomplete(const mmu::Listing& listing) {
  bool expects = !listing.counts.empty();
  for (const auto& array : listing.arrays) {
    if (array.values.empty())
      return fmt::format("line {}: no line {} {} ... says what it {}", array.line,
                         array.is_input ? ".values" : ".expect", array.name,
                         array.is_input ? "holds" : "should be");
    for (const auto& value : array.values) expects = expects || (!array.is_input && !value.any);
  }
  return expects ? "" : "nothing is expected: add lines .expect NAME VALUES";
}

}  // namespace

std::string first_unexpected(const mmu::Listing& listing, const ProgramRun& run) {
  for (std::size_t i = 0; const auto& array : arrays_of(listing, false)) {
    auto problem = first_unexpected(array, run.outputs[i++]);
    if (!problem.empty()) return problem;
  }
  const auto counted = mmu::named_counts(run.node.report.counters);
  for (const auto& count : listing.counts) {
    const auto came = std::ranges::find(counted, count.name, &mmu::NamedCount::name)->value;
    if (came != count.value)
      return fmt::format("the counter {} is expected to be {}, came {}", count.name, count.value,
                         came);
  }
  return {};
}

ProgramTest test_program(const ProgramRequest& request) {
  ProgramTest test;
  test.said = incomplete(request.listing);
  if (!test.said.empty()) return test;
  try {
    const auto run = run_program(request, files_of(request, true, {}));
    test.cycles = run.node.cycles();
    test.said = first_unexpected(request.listing, run);
    test.passed = test.said.empty();
  } catch (const Error& error) {
    test.said = error.what();
  }
  return test;
}

}  // namespace triptych::measure
