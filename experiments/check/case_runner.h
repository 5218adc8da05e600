// Runs one OpCase on a device, as a graph of one node, and compares any operator's outputs with the
// float64 reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/conformance/op_case.h"
#include "core/graph/graph.h"
#include "core/runtime/device.h"

namespace triptych::conformance {

/// The inputs of the case, filled by its rules from `seed`.
std::vector<Tensor> make_inputs(const OpCase& test, std::uint64_t seed = 1);

/// A graph with the case's operator as its only node. Every output is marked "y0", "y1", ... Inputs
/// have the names "x0", "x1", .... Rules decide which are states and constants.
Graph make_graph(const OpCase& test, const std::vector<Tensor>& inputs);

/// The outputs on `device`, with the help of its `host` (Backend::host) when it has one. If given,
/// by the kernel of that name. Throws UnsupportedError when no kernel, or not that one, accepts.
std::vector<Tensor> run_on_device(const OpCase& test, const std::vector<Tensor>& inputs,
                                  Device& device, Contract contract, Device* host = nullptr,
                                  std::string_view kernel = {});

/// The kernels of `device` for the case's operator that accept it, operands being dense: each of
/// them must run it. A library may still refuse when it prepares.
std::vector<const KernelEntry*> accepting_kernels(const OpCase& test,
                                                  const std::vector<Tensor>& inputs, Device& device,
                                                  Contract contract);

std::vector<RefTensor> to_references(const std::vector<Tensor>& tensors);

/// The float64 outputs. Under the bf16 contracts the multiplicands are rounded first.
std::vector<RefTensor> run_on_reference(const Op& op, std::vector<RefTensor> inputs,
                                        Contract contract);

/// Per output and element, the largest allowed distance from the reference (ErrorBound in op.h).
/// Where the bf16 contracts round operands that a composite computes between its inputs and its
/// outputs, which the reference does not do, that is allowed for. So are the errors of a kernel of
/// this accuracy.
std::vector<std::vector<double>> tolerances(const Op& op, std::vector<RefTensor> inputs,
                                            const std::vector<RefTensor>& expected,
                                            Contract contract,
                                            Accuracy accuracy = Accuracy::PlainSum);

/// Empty when every element is within its tolerance, else the first one that is not.
std::string first_difference(const Tensor& actual, const RefTensor& expected,
                             const std::vector<double>& tolerance);

}  // namespace triptych::conformance
