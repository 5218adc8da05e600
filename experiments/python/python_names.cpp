// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/python_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace triptych::python {

std::string python_word(std::string_view name) {
  static constexpr std::array<std::string_view, 35> words = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return std::string(name) + (std::ranges::count(words, name) > 0 ? "_" : "");
}

std::string python_name(std::string_view op) {
  if (op == "MatMul") return "matmul";  // as NumPy calls it
  std::string snake;
  for (std::size_t i = 0; i < op.size(); ++i) {
    const auto c = static_cast<unsigned char>(op[i]);
    const bool begins =
        i > 0 && std::isupper(c) != 0 && std::isupper(static_cast<unsigned char>(op[i - 1])) == 0;
    if (begins) snake += '_';
    snake += static_cast<char>(std::tolower(c));
  }
  return python_word(snake);
}

}  // namespace triptych::python
