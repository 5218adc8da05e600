// Run-time switch of the mutants that tests/mutation/conditions.py writes into sources: one build
// holds all of them, and TRIPTYCH_MUTANT selects one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace triptych::mutation {

/// The number of the wrong condition in this process times 2, plus 1 when it is negated instead of
/// dropped. Negative: none.
extern const int active;

/// One byte per condition in the file TRIPTYCH_CONDITIONS: bit 0 is set once it was false, bit 1
/// once it was true. All processes of a test map the same file. Null: nothing is recorded.
extern unsigned char* const seen;

/// The condition `number` with the value `value`: `dropped` or its opposite in its mutants.
constexpr bool condition(int number, bool dropped, bool value) {
  if (std::is_constant_evaluated()) return value;
  if (seen != nullptr) {
    const unsigned char bit = value ? 2 : 1;
    if ((seen[number] & bit) == 0) seen[number] = static_cast<unsigned char>(seen[number] | bit);
  }
  if (active >> 1 != number) return value;
  return (active & 1) != 0 ? !value : dropped;
}

}  // namespace triptych::mutation
