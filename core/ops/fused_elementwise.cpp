// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fused_elementwise.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "core/ops/elementwise.h"

namespace triptych {
namespace {

/// True when it gives f32 for f32.
bool is_arithmetic(BinaryKind kind) {
  return kind <= BinaryKind::Max || kind >= BinaryKind::ReluGradient;
}

/// True when it gives f32 for f32.
bool is_step(UnaryKind kind) { return kind != UnaryKind::Not; }

[[noreturn]] void fail(std::string_view step, std::string_view why) {
  throw_invalid(FusedElementwise::kName, fmt::format("step \"{}\": {}", step, why));
}

/// "." or the number of an input.
int parse_operand(std::string_view step, std::string_view text, std::size_t inputs) {
  if (text == ".") return ChainStep::kPrevious;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(step, fmt::format("\"{}\" is no operand; write . or the number of an input", text));
  }
  if (number < 1 || number >= static_cast<int>(inputs)) {
    fail(step, fmt::format("there is no input {} beside input 0", number));
  }
  return number;
}

/// Reads the whole text. False: it is no number.
bool parse_number(std::string_view text, float& value) {
#if defined(__cpp_lib_to_chars)
  const auto* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc{} && end == last;
#else  // libc++ of pages, which have the locale "C"
  const std::string copy(text);
  char* end = nullptr;
  value = std::strtof(copy.c_str(), &end);
  return !copy.empty() && end == copy.c_str() + copy.size();
#endif
}

/// "name=number".
Attribute parse_attribute(std::string_view step, std::string_view text) {
  const auto equals = text.find('=');
  float value = 0;
  if (equals != std::string_view::npos) {
    if (parse_number(text.substr(equals + 1), value))
      return {std::string(text.substr(0, equals)), value};
  }
  fail(step, fmt::format("\"{}\" is no NAME=NUMBER", text));
}

/// The unary operator of a step, from the attributes behind its dot.
Unary parse_unary(std::string_view step, UnaryKind kind, std::string_view operands) {
  if (!operands.starts_with('.')) fail(step, "takes what came before it: (.)");
  std::vector<Attribute> attributes;
  for (auto rest = operands.substr(1); !rest.empty();) {
    if (!rest.starts_with(", ")) fail(step, "takes what came before it and attributes");
    rest.remove_prefix(2);
    const auto end = std::min(rest.find(", "), rest.size());
    attributes.push_back(parse_attribute(step, rest.substr(0, end)));
    rest.remove_prefix(end);
  }
  const auto op =
      name_errors(FusedElementwise::kName, [&] { return Unary(kind).with_attributes(attributes); });
  return *op_cast<Unary>(*op);
}

/// The attributes that are not the kind's defaults: ", min=0".
std::string attributes_text(const Unary& op) {
  std::string text;
  const auto defaults = Unary(op.kind).attributes();
  for (const auto& attribute : op.attributes()) {
    if (std::ranges::find(defaults, attribute) != defaults.end()) continue;
    text += fmt::format(", {}={}", attribute.name, std::get<float>(attribute.value));
  }
  return text;
}

/// "Relu(.)", "Clip(., min=0)", "Sub(2, .)".
ChainStep parse_step(std::string_view text, std::size_t inputs) {
  const auto open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) fail(text, "is no NAME(operands)");
  const auto name = text.substr(0, open);
  const auto operands = text.substr(open + 1, text.size() - open - 2);
  for (const auto kind : all_unary_kinds()) {
    if (!is_step(kind) || Unary(kind).name() != name) continue;
    return {.unary = parse_unary(text, kind, operands)};
  }
  for (const auto kind : all_binary_kinds()) {
    if (!is_arithmetic(kind) || Binary(kind).name() != name) continue;
    const auto comma = operands.find(", ");
    if (comma == std::string_view::npos) fail(text, "takes two operands");
    const ChainStep step = {.binary = kind,
                            .a = parse_operand(text, operands.substr(0, comma), inputs),
                            .b = parse_operand(text, operands.substr(comma + 2), inputs)};
    if (step.a >= 0 && step.b >= 0) fail(text, "leaves out what came before it");
    return step;
  }
  fail(text, "no elementwise operator of f32 has this name");
}

/// Value of `step`.
RefTensor computed(const ChainStep& step, const RefTensor& previous,
                   std::span<const RefTensor> inputs) {
  const auto operand = [&](int i) -> const RefTensor& {
    return i == ChainStep::kPrevious ? previous : inputs[static_cast<std::size_t>(i)];
  };
  std::vector<RefTensor> operands = {operand(step.a)};
  if (!step.unary) operands.push_back(operand(step.b));
  std::vector<TensorSpec> specs;
  specs.reserve(operands.size());
  for (const auto& tensor : operands) specs.push_back(tensor.spec);
  const auto op = step.op();
  RefTensor y = {op->infer(specs)[0], {}};
  y.values.resize(static_cast<std::size_t>(y.spec.shape.elements()));
  op->reference(operands, {&y, 1});
  return y;
}

/// The specs of the values after each step.
std::vector<TensorSpec> specs_along(std::span<const ChainStep> chain, Specs inputs) {
  std::vector<TensorSpec> along;
  TensorSpec previous = inputs[0];
  for (const auto& step : chain) {
    const auto operand = [&](int i) {
      return i == ChainStep::kPrevious ? previous : inputs[static_cast<std::size_t>(i)];
    };
    std::vector<TensorSpec> operands = {operand(step.a)};
    if (!step.unary) operands.push_back(operand(step.b));
    along.push_back(previous = step.op()->infer(operands)[0]);
  }
  return along;
}

}  // namespace

OpPtr ChainStep::op() const { return unary ? make_op(*unary) : make_op(Binary(binary)); }

std::string to_string(std::span<const ChainStep> chain) {
  const auto operand = [](int i) {
    return i == ChainStep::kPrevious ? std::string(".") : fmt::format("{}", i);
  };
  std::string text;
  for (const auto& step : chain) {
    if (!text.empty()) text += "; ";
    if (step.unary) {
      text += fmt::format("{}(.{})", step.unary->name(), attributes_text(*step.unary));
    } else {
      text +=
          fmt::format("{}({}, {})", Binary(step.binary).name(), operand(step.a), operand(step.b));
    }
  }
  return text;
}

std::optional<ChainStep> chain_step(const Op& op, Specs inputs) {
  if (inputs.empty() || inputs[0].dtype != DType::F32) return std::nullopt;
  if (const auto* unary = op_cast<Unary>(op)) {
    if (is_step(unary->kind) && unary->approximate == "none") return ChainStep{.unary = *unary};
  }
  const auto* binary = op_cast<Binary>(op);
  if (binary == nullptr || !is_arithmetic(binary->kind)) return std::nullopt;
  return ChainStep{.binary = binary->kind};
}

std::vector<ChainStep> FusedElementwise::chain(std::size_t inputs) const {
  std::vector<ChainStep> chain;
  std::vector<bool> used(inputs, false);
  std::string_view rest = steps;
  while (!rest.empty()) {
    const auto end = std::min(rest.find("; "), rest.size());
    const auto step = parse_step(rest.substr(0, end), inputs);
    for (const int i : {step.a, step.b}) {
      if (i != ChainStep::kPrevious) used[static_cast<std::size_t>(i)] = true;
    }
    chain.push_back(step);
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  if (chain.empty() || chain.size() > kMostSteps) {
    throw_invalid(kName, fmt::format("takes 1 to {} steps, got {}", kMostSteps, chain.size()));
  }
  const auto unused = std::find(used.begin() + 1, used.end(), false);
  if (unused != used.end()) {
    throw_invalid(kName, fmt::format("no step reads input {}", unused - used.begin()));
  }
  return chain;
}

std::vector<TensorSpec> FusedElementwise::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, kMostInputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) require_dtype(kName, inputs, i, DType::F32);
  const auto steps_of = chain(inputs.size());
  return {name_errors(kName, [&] { return specs_along(steps_of, inputs).back(); })};
}

std::vector<ValueId> FusedElementwise::expand(OpEmitter& emitter, Values inputs) const {
  ValueId y = inputs[0];
  for (const auto& step : chain(inputs.size())) {
    const auto operand = [&](int i) {
      return i == ChainStep::kPrevious ? y : inputs[static_cast<std::size_t>(i)];
    };
    const std::vector<ValueId> both = {operand(step.a), operand(step.b)};
    y = emitter.emit(step.op(), Values(both).first(step.unary ? 1 : 2)).front();
  }
  return {y};
}

double FusedElementwise::flops(Specs inputs, Specs) const {
  double sum = 0;
  const auto steps_of = chain(inputs.size());
  const auto along = specs_along(steps_of, inputs);
  for (std::size_t i = 0; i < along.size(); ++i) {
    const TensorSpec operands[] = {along[i], along[i]};
    sum += steps_of[i].op()->flops(operands, {&along[i], 1});
  }
  return sum;
}

void FusedElementwise::reference(std::span<const RefTensor> inputs,
                                 std::span<RefTensor> outputs) const {
  RefTensor y = inputs[0];
  for (const auto& step : chain(inputs.size())) y = computed(step, y, inputs);
  outputs[0].values = std::move(y.values);
}

ErrorBound FusedElementwise::error_bound(Specs inputs) const {
  const auto count = static_cast<double>(chain(inputs.size()).size());
  return {.terms = count, .ulps = 4 * count};
}

void add_fused_elementwise_ops(OpList& list) { list.push_back(make_op(FusedElementwise{})); }

}  // namespace triptych
