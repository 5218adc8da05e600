// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/type_alignments.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string_view>
#include <vector>

namespace triptych::kernels {
namespace {

/// A record is a file's label, a line, a column, a type's label and the logarithm.
constexpr std::size_t kFields = 5;
constexpr unsigned kMostLogarithm = 16;

struct Assembly {
  std::map<std::string, std::string> texts;       ///< by label
  std::vector<std::vector<std::string>> records;  ///< operands
};

/// "\t.quad\t.LC0" as "quad" and ".LC0".
std::pair<std::string, std::string> directive_in(const std::string& line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == line.npos || line[begin] != '.') return {};
  const auto end = line.find_first_of(" \t", begin);
  if (end == line.npos) return {line.substr(begin + 1), ""};
  return {line.substr(begin + 1, end - begin - 1), line.substr(end + 1)};
}

Assembly read(std::istream& stream) {
  Assembly assembly;
  std::string label;
  bool in_record = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with(':')) {
      label = line.substr(0, line.size() - 1);
      in_record = label.starts_with(".Lubsan_data");
      if (in_record) assembly.records.emplace_back();
      continue;
    }
    const auto [word, operand] = directive_in(line);
    if (word == "string" && operand.size() >= 2) {
      assembly.texts[label] = operand.substr(1, operand.size() - 2);
    } else if (in_record && assembly.records.back().size() < kFields) {
      assembly.records.back().push_back(operand);
    }
  }
  return assembly;
}

unsigned number_in(const std::string& text) {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string alignments_in(std::istream& assembly) {
  const auto [texts, records] = read(assembly);
  std::string lines;
  for (const auto& record : records) {
    if (record.size() < kFields) continue;
    const auto file = texts.find(record[0]);
    const auto logarithm = number_in(record[4]);
    if (file == texts.end() || logarithm > kMostLogarithm) continue;
    const auto name = file->second.substr(file->second.rfind('/') + 1);
    lines += fmt::format("{} {} {} {}\n", 1U << logarithm, number_in(record[1]),
                         number_in(record[2]), name);
  }
  return lines;
}

}  // namespace triptych::kernels
