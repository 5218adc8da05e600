// The models: U-Net (Ronneberger et al., 2015) with 'same' padding and batch normalisation, a small
// convolutional network and a multilayer perceptron for quick lessons. All map images to one logit
// map per class, so that one training program serves them all. A given network may also take arrays
// of any shape, and make one row of numbers of each example.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/layers.h"

namespace triptych {

enum class Architecture { UNet, Cnn, Mlp, Given };

/// A network that somebody else has made, and that whoever holds it adds to graphs. Its methods may
/// be called by several threads at once.
class Network {
 public:
  virtual ~Network() = default;
  /// As build_model. Throws InvalidArgument for sizes that it does not take.
  virtual ValueId build(NetworkBuilder& net, std::span<const ValueId> inputs) const = 0;
  /// Specs of its inputs for a batch: images of that size, or arrays, which have fixed sizes.
  virtual std::vector<TensorSpec> inputs(std::int64_t batch, std::int64_t height,
                                         std::int64_t width) const = 0;
  /// Height and width must be multiples of this, or, when it is 0, those of the model.
  virtual std::int64_t size_multiple() const = 0;
  /// The only batch that it takes. 0: any.
  virtual std::int64_t fixed_batch() const = 0;
};

/// A model without weights, except initial weights that it was given. `classes` 1 means a binary
/// mask (one logit, sigmoid), more mean a softmax over the channels.
struct ModelConfig {
  std::string name = "unet-s";
  Architecture architecture = Architecture::UNet;
  std::int64_t base = 8;   ///< channels of the first level (UNet, Cnn) or hidden units (Mlp)
  std::int64_t depth = 3;  ///< downsampling steps of the U-Net, or layers of the others
  std::int64_t size = 64;  ///< height and width of the training images
  std::int64_t in_channels = 1;
  std::int64_t classes = 1;
  /// True: one map per class, as large as the image. False: a row for each example, of an image as
  /// a whole or of arrays: logits of its class [classes], of its tokens' [tokens, classes], or
  /// values.
  bool maps = true;
  std::shared_ptr<const Network> network = nullptr;  ///< of Architecture::Given

  /// Height and width must be multiples of this.
  std::int64_t size_multiple() const;
  /// True when images must have exactly `size` (Mlp, some of the given).
  bool fixed_size() const;
  /// The only batch that it takes. 0: any.
  std::int64_t fixed_batch() const { return network ? network->fixed_batch() : 0; }
  bool operator==(const ModelConfig&) const = default;
};

/// The presets: unet-s, unet-m, unet-l, cnn, mlp.
std::span<const ModelConfig> model_presets();

/// The preset of that name. Throws InvalidArgument listing them.
ModelConfig model_preset(std::string_view name);

/// Throws InvalidArgument, saying which number to change, unless every field is in range and fits.
void validate(const ModelConfig& config);

/// Name of input `i` in graphs of a model: "x", "x1", "x2", ...
std::string model_input_name(std::size_t i);

/// Adds the inputs of the model for a batch: x [batch, in_channels, height, width], or the arrays
/// that a given network takes.
std::vector<ValueId> add_model_inputs(Graph& graph, const ModelConfig& config, std::int64_t batch,
                                      std::int64_t height, std::int64_t width);

/// Adds the model on top of x: [N, in_channels, H, W]. Returns logits [N, classes, H, W], or for a
/// given network its output, [N, ...].
ValueId build_model(NetworkBuilder& net, const ModelConfig& config,
                    std::span<const ValueId> inputs);

}  // namespace triptych
