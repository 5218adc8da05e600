// How a page and its WebAssembly talk: requests and answers are JSON, texts in UTF-8 that end with
// a zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

/// A function that the page calls by this name.
#define TRIPTYCH_EXPORT(name) __attribute__((export_name(#name))) name

namespace triptych::web {

using Json = nlohmann::ordered_json;

/// The text that the page has written since it asked for memory.
Json request();
/// The text of `json`, until the next answer.
const char* answer_with(const Json& json);

}  // namespace triptych::web
