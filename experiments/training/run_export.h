// Trained models as ONNX files, for other programs: the network with the weights of inference,
// preceded by nodes that convert a picture's values to its input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/choice.h"
#include "experiments/training/name_map.h"
#include "experiments/training/run_folder.h"

namespace triptych::training {

/// Values that an exported model takes.
enum class Pixels : std::uint8_t {
  Bytes,       ///< uint8, 0 to 255, as most pictures have them
  Unit,        ///< f32, 0 to 1 for integers of any depth, floating values as they are
  Normalized,  ///< f32, the input of the network: no nodes precede it
};

struct RunExportOptions {
  std::optional<std::int64_t> opset;  ///< else 17, or that of the file that the network is from
  Pixels pixels = Pixels::Bytes;      ///< of a run on images
};

/// True when the run is on arrays, which its network takes as they are.
bool is_on_arrays(const SavedRun& run);

/// Content of an ONNX file. Input "image" [batch, channels, height, width], or the arrays of a
/// network that takes those, output "logits" [batch, classes, height, width], or its own output.
/// Batch and, where the network allows it, sizes are open. Its metadata say how to read both:
/// "triptych.classes" (names), "triptych.activation" (sigmoid or softmax), and of images
/// "triptych.pixels", "triptych.normalization" (JSON) and "triptych.size_multiple". Throws
/// UnsupportedError for int8 weights, and for an operator set other than that of an imported
/// network.
std::string encode_run(const SavedRun& run, const RunExportOptions& options);

/// The parameters and statistics of a run by the names of `names`, as PyTorch's state_dict has
/// them. Throws InvalidArgument for a pair that fits none, and for two weights of one name.
TensorMap named_weights(const SavedRun& run, const NameMap& names);

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::Pixels> =
    std::to_array<std::pair<training::Pixels, std::string_view>>(
        {{training::Pixels::Bytes, "uint8"},
         {training::Pixels::Unit, "unit"},
         {training::Pixels::Normalized, "normalized"}});

}  // namespace triptych
