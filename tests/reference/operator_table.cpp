// Prints docs/reference/operators.md from the list of operators and the backends' kernel tables.
// With a file as argument it compares instead: exit code 0 equal, 1 not, 77 when a backend's
// kernels cannot be listed here.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <typeindex>

#include "backends/all_backends.h"
#include "core/ops/all_ops.h"

namespace triptych {
namespace {

/// Kernel names by operator, best first.
using Kernels = std::map<std::string, std::string, std::less<>>;

Kernels kernels_of(const Backend& backend) {
  const auto device = backend.open({});
  Kernels kernels;
  for (const auto& entry : device->kernels()) {
    auto& names = kernels[std::string(entry.op)];
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  return kernels;
}

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string attribute_cell(const Op& op) {
  std::string text;
  for (const auto& attribute : op.attributes()) {
    const auto* word = std::get_if<std::string>(&attribute.value);
    const auto shown =
        word != nullptr ? fmt::format("{}=\"{}\"", attribute.name, *word) : to_string(attribute);
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", shown);
  }
  return text.empty() ? "–" : text;
}

std::string row(const Op& op, const std::vector<Kernels>& backends) {
  auto line =
      fmt::format("| {} | {} | {} | {} | {} |", op.name(), cell(op.summary()), attribute_cell(op),
                  op.composite() ? "composite" : "primitive", op.differentiable() ? "yes" : "–");
  for (const auto& kernels : backends) {
    const auto found = kernels.find(op.name());
    const auto* none = op.composite() ? "expanded" : "–";
    line += fmt::format(" {} |", found == kernels.end() ? none : found->second);
  }
  return line + "\n";
}

constexpr std::string_view kIntroduction =
    R"(<!-- Generated: build/release/tests/reference/operator_table > docs/reference/operators.md -->
# Operators

{} operators, {} of them primitives in {} families. Names, attributes and semantics are ONNX's
where ONNX has the operator; the full contract of each — shapes, dtypes, order of sums — stands in
its header in [core/ops](../../core/ops/README.md). Attributes are shown with their defaults. A
composite is defined by other operators: a backend without a kernel for it runs its expansion.
*Gradient*: by a rule of its own, or through the expansion. Kernels stand in the order in which they
are asked.

)";

std::string document() {
  std::size_t primitives = 0;
  std::set<std::type_index> families;
  for (const auto& pointer : all_ops()) {
    const Op& op = *pointer;
    if (op.composite()) continue;
    ++primitives;
    families.insert(typeid(op));
  }
  auto text = fmt::format(kIntroduction, all_ops().size(), primitives, families.size());
  std::string head = "| operator | formula | attributes | kind | gradient |";
  std::string rule = "|---|---|---|---|---|";
  std::vector<Kernels> kernels;
  for (const Backend* backend : all_backends()) {
    head += fmt::format(" kernels on {} |", backend->name());
    rule += "---|";
    kernels.push_back(kernels_of(*backend));
  }
  text += head + "\n" + rule + "\n";
  for (const auto& op : all_ops()) text += row(*op, kernels);
  return text;
}

int compare(const std::string& path) {
  std::ifstream file(path);
  const std::string found((std::istreambuf_iterator<char>(file)), {});
  const auto wanted = document();
  if (found == wanted) return 0;
  const auto differs = std::ranges::mismatch(found, wanted).in1;
  const auto line = 1 + std::count(found.begin(), differs, '\n');
  fmt::print(stderr,
             "{}, line {}: not what the operators and kernels say. Type\n"
             "  cmake --build --preset release --target operator_table\n"
             "  build/release/tests/reference/operator_table > docs/reference/operators.md\n",
             path, line);
  return 1;
}

}  // namespace
}  // namespace triptych

int main(int argc, char** argv) {
  for (const triptych::Backend* backend : triptych::all_backends()) {
    const auto here = backend->availability();
    if (here.available) continue;
    fmt::print(stderr, "kernels of {} cannot be listed here: {}\n", backend->name(), here.reason);
    return 77;
  }
  if (argc > 1) return triptych::compare(argv[1]);
  fmt::print("{}", triptych::document());
  return 0;
}
