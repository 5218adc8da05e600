// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/line_calls.h"

#include <sstream>

#include "core/base/list_text.h"

namespace triptych::kernels {

std::string with_line_calls(std::string_view assembly) {
  std::string result, here;
  bool has_frame = false;  // the function's parameters are in their places
  for (const auto text : split_lines(assembly)) {
    result += text;
    result += '\n';
    std::istringstream words{std::string(text.substr(0, text.find('#')))};
    std::string word, file, line;
    words >> word;
    if (word == ".cfi_endproc") has_frame = false;
    if (word.ends_with(':') && !word.starts_with(".Ltmp")) here.clear();  // a label of a jump
    if (text.find("__sanitizer_cov_trace_pc") != text.npos) {
      has_frame = true;
      here.clear();
    }
    if (word != ".loc" || !has_frame || text.find("is_stmt 0") != text.npos) continue;
    words >> file >> line;
    auto place = file;
    (place += ':') += line;
    if (line == "0" || place == here) continue;
    here = std::move(place);
    result += "\tcall triptych_line\n";
  }
  return result;
}

}  // namespace triptych::kernels
