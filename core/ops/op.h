// Definition of an operator: attributes, shape rule, gradient, cost and a float64 reference, in
// one place. Names, attributes and semantics are ONNX's where ONNX has the operator. Omitted
// optional inputs are always trailing ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/strong_id.h"
#include "core/ops/attribute.h"
#include "core/tensor/tensor.h"

namespace triptych {

class Op;
/// Operators are immutable once built and shared between graphs.
using OpPtr = std::shared_ptr<const Op>;

using Specs = std::span<const TensorSpec>;
using Values = std::span<const ValueId>;

/// Appends nodes to a graph. The operations that a gradient or an expansion may use. Implemented by
/// Graph.
class OpEmitter {
 public:
  virtual ~OpEmitter() = default;

  /// Appends one node and returns its outputs. Throws InvalidArgument for wrong inputs.
  virtual std::vector<ValueId> emit(OpPtr op, Values inputs) = 0;
  virtual ValueId constant(Tensor value) = 0;
  /// Valid until the next value is added. Copy everything that is needed longer (Formula::shape
  /// does).
  virtual const TensorSpec& spec(ValueId value) const = 0;

  /// emit, for an operator with one output.
  ValueId emit_one(OpPtr op, std::initializer_list<ValueId> inputs) {
    return emit(std::move(op), std::vector<ValueId>(inputs)).front();
  }
};

/// View of a gradient rule. Ids may be invalid in `output_gradients`: nothing flows back there.
struct GradientContext {
  OpEmitter& emitter;
  Values inputs;
  Values outputs;
  Values output_gradients;
  std::span<const bool> wanted;  ///< per input: its gradient is needed
};

/// Work of one node: floating-point operations (a fused multiply-add counts 2) and the bytes that
/// must at least move, each operand once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

/// A tensor of the float64 reference. Integer dtypes hold integral values.
struct RefTensor {
  TensorSpec spec;
  std::vector<double> values;
};

/// The bound of an operator's error against the float64 reference, per output element y:
/// |y - y64| <= unit(dtype) * (2 * terms * magnitude + ulps * |y64|) + absolute. Here `magnitude`
/// is the reference applied to the absolute values of the floating-point inputs (Higham, "Accuracy
/// and stability of numerical algorithms", 2nd ed., section 3.1), or of the only one in which the
/// operator is linear. `terms` is 0 for elementwise operators.
struct ErrorBound {
  double terms = 0;
  double ulps = 4;
  double absolute = 0;
  int linear_in = -1;  ///< that input. -1: all
};
/// Bound of an operator for which every kernel gives the reference's bits.
inline constexpr ErrorBound kExact = {.terms = 0, .ulps = 0, .absolute = 0};

/// One way for ranks to share the work of a node: each has the same part of the axes that are cut,
/// evenly, and computes the operator on its part.
struct Sharding {
  static constexpr std::int64_t kWhole = -1;  ///< every rank has all of the operand
  static constexpr std::int64_t kTerm = -2;   ///< the operand is the sum of the ranks' terms
  /// Where it is worth its communication.
  enum class Where : std::uint8_t {
    OperandsAreCut,  ///< one of the inputs is cut so already
    WeightsAreCut,   ///< input 1 is
    ResultIsCut,     ///< output 0 is wanted so
  };
  std::vector<std::int64_t> inputs, outputs;  ///< axes, kWhole or kTerm
  Where where = Where::OperandsAreCut;
  /// Input 1, when it is a parameter that nobody has cut, may be cut for it.
  bool cuts_weights = false;
  OpPtr op = nullptr;  ///< that computes a part, where its attributes differ
};

class Op {
 public:
  virtual ~Op() = default;

  /// ONNX's operator name, or ours in the same style.
  virtual std::string_view name() const = 0;
  /// One sentence with the formula, for the generated reference.
  virtual std::string_view summary() const = 0;
  virtual std::vector<Attribute> attributes() const = 0;
  /// A copy with these attributes. Throws InvalidArgument for unknown ones.
  virtual OpPtr with_attributes(std::span<const Attribute> attributes) const = 0;

  /// Shape rule: the outputs' specs. Throws InvalidArgument "[Op] problem".
  virtual std::vector<TensorSpec> infer(Specs inputs) const = 0;

  /// True when it has a gradient, by a rule of its own or through its expansion.
  virtual bool differentiable() const { return composite(); }
  /// Emits the gradient nodes. One id per input, invalid where there is none.
  /// Only called when differentiable() and not composite().
  virtual std::vector<ValueId> gradient(const GradientContext& context) const;

  /// The ways to share the work of a node among `parts` ranks, the best one first. sharding.h has
  /// those of many operators. None: every rank computes the whole node. Whether the axes divide is
  /// the caller's to see.
  virtual std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const;

  /// Floating-point operations. A fused multiply-add counts 2. Default: none.
  virtual double flops(Specs inputs, Specs outputs) const;
  /// The flops, and the bytes of every operand once.
  Cost cost(Specs inputs, Specs outputs) const;

  /// Dumb float64 loops. `outputs` come with their specs set and values sized.
  virtual void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const = 0;
  virtual ErrorBound error_bound(Specs inputs) const;

  /// True when the operator is defined by other operators: backends need no kernel for it (they
  /// may have one), and autodiff differentiates its expansion.
  virtual bool composite() const { return false; }
  /// Emits the defining operators and returns the outputs. Only called when composite().
  virtual std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const;

  /// (output, input) pairs that are one piece of memory, updated in place: the input must be a
  /// state, and no later node may read the old value.
  virtual std::vector<std::pair<int, int>> updates(int input_count) const;
  /// The output is the input's bytes under another shape (Reshape, Identity): no kernel runs when
  /// the plan can alias them.
  virtual bool view() const { return false; }
  /// True when all ranks of a run take part in it together: then it runs between the devices' work.
  virtual bool collective() const { return false; }
  /// True when a kernel may write output 0 over this input (same size, elementwise).
  virtual bool may_overwrite(int input) const;
  /// Inputs with values that the bf16 contracts round to bfloat16 before multiplication.
  virtual std::span<const int> multiplicands() const { return {}; }
};

/// "Conv(strides=[1, 1], pads=[1, 1, 1, 1])".
std::string to_string(const Op& op);

/// Operators that have a rule of their own for their gradient.
template <class Derived>
concept HasGradient = requires {
  {
    &Derived::gradient
    } -> std::same_as<std::vector<ValueId> (Derived::*)(const GradientContext&) const>;
};

/// Operators that are defined by others.
template <class Derived>
concept HasExpansion = requires {
  { &Derived::expand } -> std::same_as<std::vector<ValueId> (Derived::*)(OpEmitter&, Values) const>;
};

/// Properties that follow from the members of an operator struct, which may stand for a family of
/// operators:
/// - `static void visit(auto& self, auto& visitor)`, which calls `visitor("name", self.member)` for
///   each data member (the attributes), and copying,
/// - `gradient`: it is differentiable. `expand`: it is composite,
/// - `static constexpr ErrorBound kErrorBound`: the bound, if it is the same for all shapes,
/// - `static constexpr int kMultiplicands[]`: the multiplicands.
/// Results that depend on an attribute are overridden instead. A family overrides name() and
/// summary().
template <class Derived>
class OpFamily : public Op {
 public:
  std::vector<Attribute> attributes() const override {
    AttributeWriter writer;
    visit_members(static_cast<const Derived&>(*this), writer);
    return writer.take();
  }
  OpPtr with_attributes(std::span<const Attribute> attributes) const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    AttributeReader reader(copy->name(), attributes);
    visit_members(*copy, reader);
    reader.finish();
    return copy;
  }

  bool differentiable() const override {
    return HasGradient<Derived> || static_cast<const Derived&>(*this).composite();
  }
  bool composite() const override { return HasExpansion<Derived>; }
  ErrorBound error_bound(Specs inputs) const override {
    if constexpr (requires { Derived::kErrorBound; }) return Derived::kErrorBound;
    return Op::error_bound(inputs);
  }
  std::span<const int> multiplicands() const override {
    if constexpr (requires { Derived::kMultiplicands; }) return Derived::kMultiplicands;
    return {};
  }

 private:
  static void visit_members(auto& self, auto& visitor) {
    if constexpr (requires { Derived::visit(self, visitor); }) {
      Derived::visit(self, visitor);
    } else {
      static_assert(sizeof(Derived) == sizeof(Op), "an operator with members lists them in visit");
    }
  }
};

/// The same for a single operator, named by `static constexpr std::string_view kName, kSummary`.
template <class Derived>
class OpOf : public OpFamily<Derived> {
 public:
  std::string_view name() const override { return Derived::kName; }
  std::string_view summary() const override { return Derived::kSummary; }
};

/// `op` as a node's operator. Example: `Conv conv; conv.strides = {2, 2}; make_op(conv)`.
template <class T>
OpPtr make_op(T op) {
  return std::make_shared<const T>(std::move(op));
}

/// Operators with default attributes. Each file of core/ops that has some appends them, in a
/// function `add_FILE_ops`.
using OpList = std::vector<OpPtr>;

/// `op` as a T, or nullptr.
template <class T>
const T* op_cast(const Op& op) {
  return dynamic_cast<const T*>(&op);
}

/// Throws "[op] takes A to B inputs, got N" unless low <= inputs.size() <= high.
void require_inputs(std::string_view op, Specs inputs, std::size_t low, std::size_t high);
/// Throws "[op] input I is bool[..]; ..." unless input `index` has dtype `dtype`.
void require_dtype(std::string_view op, Specs inputs, std::size_t index, DType dtype);
/// Throws unless input `index` has this rank.
void require_rank(std::string_view op, Specs inputs, std::size_t index, std::int64_t rank);
/// Throws unless input `index` has this shape.
void require_shape(std::string_view op, Specs inputs, std::size_t index, const Shape& shape);

}  // namespace triptych
