// A network from an ONNX file as a model to train: exporters' changes for inference are adapted to
// training graphs, with the file's weights as initial values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "core/nn/losses.h"
#include "core/nn/models.h"
#include "core/onnx/trainable.h"
#include "experiments/training/name_map.h"

namespace triptych::training {

/// How a file becomes a model to train.
struct ImportedNetworkOptions {
  std::optional<std::int64_t> size;      ///< of training images, by default the file's, or 256
  std::optional<std::int64_t> channels;  ///< of images, where the file leaves them open
  std::vector<std::string> frozen;       ///< initialisers that are not trained (make_trainable)
  LossKind loss = LossKind::CrossEntropy;
  /// Sizes of a row of each input's array, in their order, where a run trains on arrays. Empty: the
  /// network takes images.
  std::vector<Dims> rows = {};
  bool takes_arrays = true;  ///< the command has an option for some, which messages advise
};

class ImportedNetwork final : public Network {
 public:
  /// Throws as make_trainable does, and InvalidArgument for weights that are not finite. `name` is
  /// that of the file, for messages.
  ImportedNetwork(std::string name, onnx::Model model, const ImportedNetworkOptions& options);

  ValueId build(NetworkBuilder& net, std::span<const ValueId> inputs) const override;
  std::vector<TensorSpec> inputs(std::int64_t batch, std::int64_t height,
                                 std::int64_t width) const override;
  std::int64_t size_multiple() const override { return size_multiple_; }
  std::int64_t fixed_batch() const override;

  /// The model that a run folder keeps. It becomes the same network again.
  const onnx::Model& model() const { return trainable_.model; }
  /// The same with the parameters and statistics of `states`, a run's.
  onnx::Model trained(const TensorMap& states) const;
  /// Throws InvalidArgument when `from` has another value of an initialiser that is not trained,
  /// `names` the other names: a run from such weights would mix both.
  void require_kept(const TensorMap& from, const NameMap& names) const;
  const std::vector<std::string>& frozen() const { return options_.frozen; }
  /// SHA-256 of that model's file.
  const std::string& sha256() const { return sha256_; }
  /// Changes that made it fit for training, for its user.
  std::vector<std::string> notes() const;
  /// Channels of its images and of its output, and the requested size or its own.
  std::int64_t channels() const { return channels_; }
  std::int64_t classes() const { return classes_; }
  std::int64_t size() const { return size_; }
  /// As ModelConfig::maps.
  bool maps() const { return maps_; }
  /// Sizes of a row of each array that it takes. Empty: it takes images.
  const std::vector<Dims>& rows() const { return options_.rows; }
  /// Rows of the smallest table that input `i` picks from (Gather), as token numbers do. Nothing
  /// when it picks from none.
  std::optional<std::int64_t> choices(std::size_t input) const;
  /// Spec of its output for one example, [1, ...], of the training images' size.
  const TensorSpec& output() const { return output_; }

 private:
  const onnx::ModelValue& input() const { return trainable_.model.inputs.front(); }
  void require_finite() const;
  void require_image_input() const;
  void require_rows() const;
  void choose_size();
  /// Finds the smallest step of sizes that it takes.
  void choose_multiple();
  /// The network for a batch of one of that size.
  struct Built {
    Graph graph;
    std::vector<ValueId> inputs = {};
    ValueId output = {};
  };
  Built built(std::int64_t side) const;
  TensorSpec output_for(std::int64_t side) const;
  /// True when it is one map per class, as large as the images.
  bool is_map(const TensorSpec& output, std::int64_t side) const;
  bool takes(std::int64_t side) const;
  /// Throws UnsupportedError for an output that no loss takes.
  void require_output() const;

  std::string name_;
  ImportedNetworkOptions options_;
  onnx::TrainableModel trainable_;
  std::string sha256_;
  std::int64_t channels_ = 0, classes_ = 0, size_ = 0, size_multiple_ = 1;
  bool maps_ = true;
  TensorSpec output_;
};

/// The model of an ONNX file. Throws as load_model and make_trainable do, InvalidArgument for
/// arrays that are not its inputs', and UnsupportedError for an output that no loss takes.
ModelConfig imported_model(const std::filesystem::path& file,
                           const ImportedNetworkOptions& options = {});

/// Likewise, of one that has been read, to be known as `name`.
ModelConfig imported_model(const std::string& name, onnx::Model model,
                           const ImportedNetworkOptions& options);

/// The network of `model`, or nullptr for a preset.
const ImportedNetwork* imported_network(const ModelConfig& model);

/// File of a run folder that holds its network.
inline constexpr const char* kModelFile = "model.onnx";

/// Writes down the network of a run in `folder`. Nothing for a preset. Throws as
/// OutputLedger::write.
void save_network(const std::filesystem::path& folder, const ModelConfig& model);

}  // namespace triptych::training
