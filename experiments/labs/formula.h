// Formulas that a student writes as text, and their values for given numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace triptych::labs {

/// The names that a formula may use.
using Variables = std::map<std::string, double, std::less<>>;

/// Value of a formula such as "2 * (N - 1) * (alpha + S / (N * beta))". Numbers, names, brackets,
/// and from the weakest to the strongest
///   a || b, a && b                         1 or 0
///   a == b, !=, <, <=, >, >=               1 or 0
///   a + b, a - b, a * b, a / b, a % b      a % b has the sign of b: -1 % 4 is 3
///   -a, ceil(a), floor(a), log2(a), min(a, b), max(a, b)
/// `/` does not round. Throws InvalidArgument, which names the place, for a text that is none, a
/// name that is unknown, a division by zero, and a value that is not finite.
double evaluate(std::string_view formula, const Variables& variables);

}  // namespace triptych::labs
