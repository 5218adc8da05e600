// A sentence of the source documents, and the result of this program's test of it: a stated rule
// turns numbers of this very run into a verdict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/page/json.h"

namespace triptych::studies {

using page::Json;

class Laboratory;

enum class ClaimVerdict {
  HoldsHere,
  HoldsUnderConditions,
  OutOfDate,
  Wrong,
};

/// "holds here", "holds under these conditions", "out of date" or "wrong".
std::string_view to_string(ClaimVerdict verdict);

/// Result of an examination.
struct Finding {
  ClaimVerdict verdict = ClaimVerdict::Wrong;
  std::string why;                    ///< sentences with the numbers that decided
  std::vector<std::string> commands;  ///< that show the same
  Json tables = Json::array();        ///< see page_parts.h
  Json charts = Json::array();
};

struct Claim {
  std::string_view id;         ///< "bandwidth"
  std::string_view title;      ///< of its part of the page
  std::string_view statement;  ///< as the source says it
  std::string_view source;     ///< document, figure or table
  std::string_view rule;       ///< which numbers give which verdict
  Finding (*examine)(Laboratory& laboratory);
};

/// All of them, in the order of the page.
std::span<const Claim> claims();

/// Those with these ids, in the order of the page. All without any. Throws InvalidArgument listing
/// the ids.
std::vector<const Claim*> find_claims(std::span<const std::string> ids);

Json to_json(const Claim& claim, const Finding& finding);

}  // namespace triptych::studies
