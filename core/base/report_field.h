// A value of a record as reports have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych {

/// A record lists its values by `static void visit(auto& self, auto& visitor)`, which calls
/// visitor(ReportField, value) for each. JSON, CSV and tables are made from that list.
struct ReportField {
  const char* key;         ///< in JSON and CSV
  const char* name = "";   ///< heads a column. Empty: tables leave it out
  const char* unit = "1";  ///< on pages: "%" for a share
};

}  // namespace triptych
