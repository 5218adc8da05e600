// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/module/messages.h"

#include <cstddef>
#include <string>
#include <vector>

namespace triptych::web {
namespace {

std::vector<char>& request_text() {
  static std::vector<char> text;
  return text;
}

}  // namespace

Json request() { return Json::parse(request_text().data()); }

const char* answer_with(const Json& json) {
  static std::string text;
  text = json.dump();
  return text.c_str();
}

}  // namespace triptych::web

/// Memory for the next request's text.
extern "C" char* TRIPTYCH_EXPORT(request_memory)(std::size_t bytes) {
  auto& text = triptych::web::request_text();
  text.assign(bytes + 1, '\0');
  return text.data();
}
