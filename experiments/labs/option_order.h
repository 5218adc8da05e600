// The order of the options of multiple-choice questions, which differs between students.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "experiments/labs/lab.h"

namespace triptych::labs {

/// By question the handout's letters in the order of a student: "cabd" shows option c as (a).
using OptionOrders = std::map<std::string, std::string>;

/// Orders for all questions of `handout` that have four options, drawn from `seed`. Options are
/// "(a) ..., (b) ..." in one paragraph behind "**ID.**", or the items "- a) ..." behind "`ID`".
OptionOrders draw_option_orders(std::string_view handout, std::span<const Explanation> questions,
                                std::uint64_t seed);
/// The handout with the options in those orders.
std::string reordered(std::string_view handout, const OptionOrders& orders);

}  // namespace triptych::labs
