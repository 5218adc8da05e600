// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fault.h"

#include <fmt/core.h>

namespace triptych::parallel {

std::string to_string(const Fault& fault) {
  std::string text = fmt::format("rank {} ", fault.culprit);
  switch (fault.cause) {
    case Cause::Died:
      text += "ended";
      break;
    case Cause::Stalled:
      text += fmt::format("stopped answering for {:.1f} s", fault.waited.count());
      break;
    case Cause::Mismatch:
      text += "disagreed";
      break;
    case Cause::Threw:
      text += "failed";
      break;
    case Cause::Lost:
      text += "sent a message that did not arrive";
  }
  if (!fault.operation.empty()) text += " in " + fault.operation;
  if (fault.noticed_by >= 0 && fault.noticed_by != fault.culprit)
    text += fmt::format(", noticed by rank {}", fault.noticed_by);
  if (!fault.detail.empty()) text += ": " + fault.detail;
  return text;
}

}  // namespace triptych::parallel
