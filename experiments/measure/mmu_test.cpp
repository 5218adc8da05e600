// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/mmu_test.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace triptych::measure {
namespace {

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

ProgramTest test_program(const ProgramRequest& request) {
  ProgramTest test;
  test.said = incomplete(request.listing);
  if (!test.said.empty()) return test;
  try {
    const auto run = run_program(request, files_of(request, true, {}));
    test.cycles = run.node.cycles();
    test.said = run.unexpected;
    test.passed = test.said.empty();
  } catch (const Error& error) {
    test.said = error.what();
  }
  return test;
}

}  // namespace triptych::measure
