// Spellings that the program had before decision 94, for the message about an unknown word.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::app {

/// The spelling that replaces `word` of `command` ("lab start"), or "" if `word` was never valid
/// there. `word` is an option without its value, or an argument.
std::string new_spelling(std::string_view command, std::string_view word);

}  // namespace triptych::app
