// Arrays that a run trains on instead of pictures: .npy files with its examples as rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/onnx/model.h"
#include "core/tensor/tensor.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

/// The file of each of the model's inputs, in their order, from "x.npy", in that order, or
/// "name=x.npy". Throws InvalidArgument for a repeated or unknown name, or one file
/// too many or too few.
std::vector<std::string> files_of_inputs(const onnx::Model& model,
                                         const std::vector<std::string>& texts);

/// Sizes of a row of each file, as ImportedNetworkOptions::rows takes them. Throws as load_npy
/// does, and IoError for an array without rows.
std::vector<Dims> row_sizes(const std::vector<std::string>& files);

/// The examples of config.data.inputs and target, classes as the loss takes them. Throws IoError
/// with the file when one is missing or broken, or rows, types, sizes or classes do not fit.
/// InvalidArgument when they are not those of config.data.sha256.
segmentation::Dataset load_arrays(const RunConfig& config);

/// SHA-256 of the values of all arrays.
std::string sha256_of(const segmentation::Arrays& arrays);

}  // namespace triptych::training
