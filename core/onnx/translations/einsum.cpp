// Einstein's sums of one or two operands, as products of stacked matrices.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/onnx/node_import.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"

namespace triptych::onnx {
namespace {

/// "bij,bjk->bik" in parts. An ellipsis is refused.
struct Equation {
  std::vector<std::string> operands;
  std::string result;

  explicit Equation(const NodeImport& n, std::string text) {
    std::erase(text, ' ');
    n.refuse_unless(text.find('.') == std::string::npos, "an ellipsis in the equation");
    const auto arrow = text.find("->");
    std::string part;
    for (const char c : text.substr(0, arrow) + ",") {
      if (c != ',') {
        part += c;
        continue;
      }
      operands.push_back(std::exchange(part, {}));
    }
    result = arrow == std::string::npos ? implied() : text.substr(arrow + 2);
    const auto letters = [](const std::string& list) {
      return std::ranges::all_of(list, [](unsigned char c) { return std::isalpha(c) != 0; });
    };
    if (!std::ranges::all_of(operands, letters) || !letters(result))
      n.broken("its equation is wrong");
  }

  /// Letters that stand once, in alphabetical order.
  std::string implied() const {
    std::map<char, int> counts;
    for (const auto& operand : operands) {
      for (const char letter : operand) ++counts[letter];
    }
    std::string once;
    for (const auto& [letter, count] : counts) {
      if (count == 1) once += letter;
    }
    return once;
  }
};

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

/// A value with letters as axes.
struct Lettered {
  ValueId value;
  std::string axes;
};

/// Sums over the axes that no other operand has. A repeated letter is refused.
Lettered without_lonely_axes(const NodeImport& n, Lettered x, const std::string& kept) {
  std::vector<std::int64_t> lonely;
  std::string left;
  for (std::size_t i = 0; i < x.axes.size(); ++i) {
    n.refuse_unless(std::ranges::count(x.axes, x.axes[i]) == 1, "a diagonal");
    if (has(kept, x.axes[i])) {
      left += x.axes[i];
    } else {
      lonely.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (lonely.empty()) return x;
  return {n.f.sum(x.value, lonely, false), left};
}

Lettered arranged(const NodeImport& n, const Lettered& x, const std::string& axes) {
  if (x.axes == axes) return x;
  std::vector<std::int64_t> perm;
  for (const char letter : axes) perm.push_back(static_cast<std::int64_t>(x.axes.find(letter)));
  return {n.transpose(x.value, perm), axes};
}

/// Letters of `axes` for which `accepts` holds.
template <class Accepts>
std::string filtered(const std::string& axes, const Accepts& accepts) {
  std::string result;
  std::ranges::copy_if(axes, std::back_inserter(result), accepts);
  return result;
}

/// Both operands as stacks of matrices: shared axes that stay, own axes, shared ones that are
/// summed.
Lettered product(const NodeImport& n, const Lettered& a, const Lettered& b,
                 const std::string& result) {
  const auto stack = filtered(a.axes, [&](char c) { return has(b.axes, c) && has(result, c); });
  const auto summed = filtered(a.axes, [&](char c) { return has(b.axes, c) && !has(result, c); });
  const auto rows = filtered(a.axes, [&](char c) { return !has(b.axes, c); });
  const auto columns = filtered(b.axes, [&](char c) { return !has(a.axes, c); });
  const auto left = arranged(n, a, stack + rows + summed).value;
  const auto right = arranged(n, b, stack + summed + columns).value;
  const Shape s = n.graph.spec(left).shape, t = n.graph.spec(right).shape;
  const auto k = static_cast<std::int64_t>(stack.size());
  const auto r = k + static_cast<std::int64_t>(rows.size());
  const auto c = k + static_cast<std::int64_t>(summed.size());
  const auto depth = s.elements_between(0, k), terms = s.elements_between(r, s.rank());
  if (depth != t.elements_between(0, k) || terms != t.elements_between(k, c)) {
    n.broken("its operands do not fit");
  }
  const auto y = n.apply(make_op(MatMul{}),
                         {n.reshape(left, {depth, s.elements_between(k, r), terms}),
                          n.reshape(right, {depth, terms, t.elements_between(c, t.rank())})});
  Dims dims(s.dims().begin(), s.dims().begin() + r);
  dims.insert(dims.end(), t.dims().begin() + c, t.dims().end());
  return {n.reshape(y, dims), stack + rows + columns};
}

std::vector<ValueId> einsum(NodeImport& n) {
  const Equation equation(n, n.text("equation", ""));
  const auto count = equation.operands.size();
  n.refuse_unless(count <= 2, fmt::format("an equation of {} operands", count));
  if (count != n.input_count()) n.broken("its equation has another number of operands");
  std::vector<Lettered> operands;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& axes = equation.operands[i];
    if (static_cast<std::int64_t>(axes.size()) != n.rank(i)) n.broken("its equation does not fit");
    const auto others = count == 2 ? equation.operands[1 - i] : std::string();
    operands.push_back(without_lonely_axes(n, {n.f32(i), axes}, equation.result + others));
  }
  auto result = operands.front();
  if (count == 2) result = product(n, operands[0], operands[1], equation.result);
  auto sorted = result.axes, wanted = equation.result;
  std::ranges::sort(sorted);
  std::ranges::sort(wanted);
  if (sorted != wanted) n.broken("its equation has letters that no operand has");
  return {n.like(0, arranged(n, result, equation.result).value)};
}

}  // namespace

void add_einsum_translations(TranslationList& list) { list.push_back({"Einsum", einsum}); }

}  // namespace triptych::onnx
