// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/imported_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/output_ledger.h"
#include "core/io/sha256.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/onnx/model_writer.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/cast.h"
#include "core/ops/gather.h"
#include "core/ops/reshape.h"
#include "experiments/training/bad_number.h"

namespace triptych::training {
namespace {

constexpr std::int64_t kDefaultSize = 256;
constexpr std::int64_t kLargestMultiple = 128;
constexpr std::size_t kImageRank = 4;
constexpr std::size_t kMean = 3;  // input of BatchNormalization

std::string digest_of(const std::string& bytes) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(bytes)));
  return hash.finish();
}

/// Names that a training graph and a checkpoint give to values of their own.
std::string state_name(const std::string& name) {
  const auto begins = [&](std::string_view with) { return name.starts_with(with); };
  const bool taken = name == "x" || name == "target" || name == "learning_rate" ||
                     begins("optimizer.") || begins("run.") || begins("estimated.") ||
                     begins("onnx.");
  return taken ? "parameter." + name : name;
}

/// Sizes as messages have them: "[batch, 3, ?]".
std::string sizes_text(const onnx::ModelValue& input) {
  std::vector<std::string> sizes;
  for (const auto& [size, symbol] : input.shape)
    sizes.push_back(size >= 0 ? std::to_string(size) : symbol.empty() ? "?" : symbol);
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

/// The first of them, and how many there are besides.
std::string short_list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 6;
  const auto shown = std::span(names).first(std::min(most, names.size()));
  const auto more = names.size() - shown.size();
  return fmt::format("\"{}\"{}", fmt::join(shown, "\", \""),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

/// Appends the nodes of an import to the graph of a network.
class Transplant {
 public:
  Transplant(NetworkBuilder& net, const Graph& from) : net_(net), from_(from) {}

  /// `names` of the inputs there.
  ValueId run(std::span<const ValueId> inputs, const std::vector<std::string>& names,
              const std::vector<std::pair<std::string, StateRole>>& states) {
    for (std::size_t i = 0; i < inputs.size(); ++i) own_[from_.find(names[i])] = inputs[i];
    for (const auto& [name, role] : states) add_state(from_.find(name), role);
    for (const auto id : from_.values_of(ValueKind::Constant))
      own_[id] = net_.graph.add_constant(from_.value(id).name, from_.value(id).data);
    for (const auto& node : from_.nodes()) add_node(node);
    return own_.at(from_.outputs().front().value);
  }

 private:
  void add_state(ValueId id, StateRole role) {
    const auto& value = from_.value(id);
    auto initial = net_.draw ? value.data : std::make_shared<const Tensor>(value.spec);
    own_[id] = net_.graph.add_state(state_name(value.name), std::move(initial), role);
    if (role == StateRole::Parameter) net_.parameters.push_back(own_[id]);
  }

  void add_node(const Node& node) {
    auto inputs = mapped<ValueId>(node.inputs, [&](const auto input) { return own_.at(input); });
    const auto outputs = net_.graph.add_node(operator_of(node), inputs, node.name);
    // The training form has more of them, which nobody reads.
    for (std::size_t i = 0; i < node.outputs.size(); ++i) own_[node.outputs[i]] = outputs[i];
  }

  OpPtr operator_of(const Node& node) const {
    const auto* norm = op_cast<BatchNormalization>(*node.op);
    if (norm == nullptr || !net_.training) return node.op;
    if (from_.value(node.inputs[kMean]).kind != ValueKind::State) return node.op;  // frozen
    auto training = *norm;
    training.training_mode = true;
    if (net_.momentum == 0) training.momentum = 0;
    return make_op(training);
  }

  NetworkBuilder& net_;
  const Graph& from_;
  std::map<ValueId, ValueId> own_;
};

}  // namespace

ImportedNetwork::ImportedNetwork(std::string name, onnx::Model model,
                                 const ImportedNetworkOptions& options)
    : name_(std::move(name)),
      options_(options),
      trainable_(onnx::make_trainable(std::move(model), options.frozen,
                                      options.loss == LossKind::MeanSquaredError)),
      sha256_(digest_of(onnx::encode_model(trainable_.model))) {
  require_finite();
  if (options_.rows.empty()) {
    require_image_input();
    choose_size();
  } else {
    require_rows();
    channels_ = size_ = 1;
    size_multiple_ = 0;
  }
  output_ = output_for(size_);
  maps_ = options_.rows.empty() && is_map(output_, size_);
  classes_ = output_.shape.rank() < 2 ? 0 : output_.shape.dims()[class_axis(output_.shape)];
  require_output();
  if (!maps_) size_multiple_ = 0;
  choose_multiple();
}

void ImportedNetwork::require_finite() const {
  for (const auto& [weights, role] : trainable_.states) {
    if (const auto bad = bad_number_in(*trainable_.model.initializers.at(weights))) {
      throw InvalidArgument(fmt::format(
          "\"{}\" of \"{}\" holds {}, from which nothing can be trained; export it with weights "
          "that are finite",
          weights, name_, *bad));
    }
  }
}

void ImportedNetwork::choose_multiple() {
  if (size_multiple_ == 0) return;
  for (std::int64_t unit = 1; unit <= kLargestMultiple; unit *= 2) {
    size_multiple_ = size_ % unit == 0 && takes(size_ + unit) ? unit : 0;
    if (size_multiple_ != 0) return;
  }
}

void ImportedNetwork::require_output() const {
  const auto& shape = output_.shape;
  const bool whole =
      output_.dtype == DType::F32 && shape.rank() >= 2 && shape[0] == 1 && shape.elements() > 0;
  const bool of_images = !options_.rows.empty() || maps_ || shape.elements() == classes_;
  if (!whole || !of_images) {
    throw UnsupportedError(fmt::format(
        "\"{}\" makes {} of {}; training wants one map per class, as large as the images, or one "
        "row of classes for each: export that as its first output",
        name_, to_string(output_), options_.rows.empty() ? "an image" : "one example"));
  }
  const auto& last = trainable_.last_activation;
  const bool fits = last.empty() || (last == "Sigmoid") == (classes_ == 1);
  if (fits) return;
  throw UnsupportedError(fmt::format(
      "\"{}\" ends with {} over {} channels: {} has one class, which {} tells apart; export "
      "it without",
      name_, last, classes_, maps_ ? "a pixel" : "an example",
      classes_ == 1 ? "a sigmoid" : "a softmax"));
}

void ImportedNetwork::require_rows() const {
  const auto& inputs = trainable_.model.inputs;
  if (inputs.size() != options_.rows.size()) {
    throw InvalidArgument(fmt::format("\"{}\" has {}, got {}", name_,
                                      counted(std::ssize(inputs), "input"),
                                      counted(std::ssize(options_.rows), "array")));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& input = inputs[i];
    const auto& row = options_.rows[i];
    bool fits = input.shape.size() == row.size() + 1;
    for (std::size_t axis = 0; fits && axis < row.size(); ++axis) {
      const auto size = input.shape[axis + 1].size;
      fits = row[axis] > 0 && (size < 0 || size == row[axis]);
    }
    if (!fits) {
      throw InvalidArgument(fmt::format(
          "the input \"{}\" of \"{}\" is {}, whose first axis is the batch, and a row of its array "
          "is [{}]; give an array of one row per example",
          input.name, name_, sizes_text(input), fmt::join(row, ", ")));
    }
    if (input.shape[0].size <= 1) continue;
    throw UnsupportedError(fmt::format(
        "\"{}\" takes batches of {} alone, and evaluation takes one example at a time; export it "
        "with its batch left open",
        name_, input.shape[0].size));
  }
}

void ImportedNetwork::require_image_input() const {
  const auto& inputs = trainable_.model.inputs;
  if (inputs.size() != 1) {
    throw UnsupportedError(fmt::format(
        "\"{}\" has {} inputs; one, of images, is what {}", name_, inputs.size(),
        options_.takes_arrays
            ? "training gives it, or give the option input for each and the option target"
            : "this command gives it"));
  }
  const auto& shape = inputs.front().shape;
  const bool is_image = inputs.front().dtype == DType::F32 && shape.size() == kImageRank;
  if (is_image && shape[0].size > 1) {
    throw UnsupportedError(
        fmt::format("\"{}\" takes batches of {} alone, and evaluation takes one image at a time; "
                    "export it with "
                    "its batch left open",
                    name_, shape[0].size));
  }
  if (is_image) return;
  throw UnsupportedError(
      fmt::format("input \"{}\" of \"{}\" is {} of {} dimensions; images are f32 [batch, channels, "
                  "height, width]: {}",
                  inputs.front().name, name_, to_string(inputs.front().dtype), shape.size(),
                  options_.takes_arrays ? "give arrays by the option input and the option target"
                                        : "this command trains networks of images alone"));
}

std::int64_t ImportedNetwork::fixed_batch() const {
  return std::max<std::int64_t>(0, input().shape[0].size);
}

void ImportedNetwork::choose_size() {
  const auto& shape = input().shape;
  channels_ = shape[1].size >= 0 ? shape[1].size : options_.channels.value_or(0);
  if (channels_ <= 0) {
    throw InvalidArgument(fmt::format(
        "\"{}\" leaves open how many channels its images have; give the option in-channels",
        name_));
  }
  if (options_.channels && *options_.channels != channels_) {
    throw InvalidArgument(
        fmt::format("\"{}\" takes images of {} channels; leave out the option "
                    "in-channels",
                    name_, channels_));
  }
  const auto height = shape[2].size, width = shape[3].size;
  const auto fixed = std::max(height, width);
  size_ = options_.size.value_or(fixed > 0 ? fixed : kDefaultSize);
  if (fixed <= 0) return;
  size_multiple_ = 0;
  if (height >= 0 && width >= 0 && height != width) {
    throw UnsupportedError(fmt::format(
        "\"{}\" takes images of {} x {} alone; training draws squares: export it with height and "
        "width left open",
        name_, height, width));
  }
  if (size_ == fixed) return;
  throw InvalidArgument(fmt::format(
      "\"{}\" takes images of {} pixels a side alone; leave out the option size, or export it with "
      "height and width left open",
      name_, fixed));
}

std::vector<TensorSpec> ImportedNetwork::inputs(std::int64_t batch, std::int64_t height,
                                                std::int64_t width) const {
  if (options_.rows.empty()) return {{DType::F32, Shape{batch, channels_, height, width}}};
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < options_.rows.size(); ++i) {
    auto dims = options_.rows[i];
    dims.insert(dims.begin(), batch);
    specs.push_back({trainable_.model.inputs[i].dtype, Shape(std::move(dims))});
  }
  return specs;
}

ImportedNetwork::Built ImportedNetwork::built(std::int64_t side) const {
  Built result;
  for (const auto& spec : inputs(1, side, side))
    result.inputs.push_back(result.graph.add_input(model_input_name(result.inputs.size()), spec));
  NetworkBuilder net{.graph = result.graph, .draw = false};
  result.output = build(net, result.inputs);
  return result;
}

TensorSpec ImportedNetwork::output_for(std::int64_t side) const {
  const auto network = built(side);
  return network.graph.spec(network.output);
}

std::optional<std::int64_t> ImportedNetwork::choices(std::size_t input) const {
  const auto network = built(size_);
  std::set<ValueId> same = {network.inputs.at(input)};  // the input, of any shape
  std::optional<std::int64_t> least;
  for (const auto& node : network.graph.nodes()) {
    const bool reshapes =
        op_cast<Reshape>(*node.op) != nullptr || op_cast<Cast>(*node.op) != nullptr;
    if (reshapes && same.contains(node.inputs.front())) same.insert(node.outputs.front());
    const auto* gather = op_cast<Gather>(*node.op);
    if (gather == nullptr || !same.contains(node.inputs[1])) continue;
    const auto rows = network.graph.spec(node.inputs.front()).shape[gather->axis];
    least = std::min(least.value_or(rows), rows);
  }
  return least;
}

bool ImportedNetwork::is_map(const TensorSpec& output, std::int64_t side) const {
  return output.dtype == DType::F32 && output.shape.rank() == kImageRank && output.shape[0] == 1 &&
         output.shape[2] == side && output.shape[3] == side;
}

bool ImportedNetwork::takes(std::int64_t side) const {
  try {
    return is_map(output_for(side), side);
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> ImportedNetwork::notes() const {
  std::vector<std::string> notes;
  if (!trainable_.last_activation.empty()) {
    notes.push_back(fmt::format("the {} at the end of \"{}\" is left out: losses take logits",
                                trainable_.last_activation, name_));
  }
  if (trainable_.batch_normalizations == 0) {
    notes.push_back(fmt::format(
        "\"{}\" has no batch normalisation, or its exporter has folded it into convolutions; it is "
        "trained as it stands",
        name_));
  }
  if (!trainable_.operands.empty()) {
    notes.push_back(fmt::format(
        "trained, too, as what is added, multiplied or joined is: {}; what is none of the author's "
        "parameters (a mask, a table of positions) is kept by the option freeze",
        short_list(trainable_.operands)));
  }
  if (!trainable_.shared.empty()) {
    notes.push_back(
        fmt::format("one initialiser for several layers, which learn it together: {}; PyTorch's "
                    "default exporter "
                    "merges equal values so, and dynamo=False keeps one for each layer",
                    short_list(trainable_.shared)));
  }
  if (!trainable_.kept.empty()) {
    notes.push_back(fmt::format("not trained, as no layer has them for weights: {}",
                                short_list(trainable_.kept)));
  }
  if (trainable_.outputs_in_file > 1) {
    notes.push_back(fmt::format("the first of {} outputs of \"{}\" is trained",
                                trainable_.outputs_in_file, name_));
  }
  return notes;
}

onnx::Model ImportedNetwork::trained(const TensorMap& states) const {
  auto model = trainable_.model;
  for (const auto& [name, role] : trainable_.states)
    model.initializers.at(name) =
        std::make_shared<const Tensor>(states.at(state_name(name)).clone());
  return model;
}

void ImportedNetwork::require_kept(const TensorMap& from, const NameMap& names) const {
  for (const auto& [name, tensor] : trainable_.model.initializers) {
    const auto found = from.find(names.there(state_name(name)));
    const bool trained = std::ranges::count(trainable_.states, name,
                                            [](const auto& state) { return state.first; }) > 0;
    if (trained || found == from.end()) continue;
    const bool same = found->second.spec() == tensor->spec() &&
                      std::ranges::equal(found->second.bytes(), tensor->bytes());
    if (same) continue;
    throw InvalidArgument(fmt::format(
        "\"{0}\" is not trained and stays as \"{1}\" has it, but the weights to begin with have "
        "another value of it; make a model of them by `triptych export` and train that one with "
        "\"{0}\" kept",
        name, name_));
  }
}

ValueId ImportedNetwork::build(NetworkBuilder& net, std::span<const ValueId> inputs) const {
  const auto own_batch = net.graph.spec(inputs.front()).shape[0];
  if (const auto batch = fixed_batch(); batch > 0 && own_batch != batch) {
    throw InvalidArgument(fmt::format(
        "\"{0}\" takes batches of {1} alone, and {2} are wanted; export it with its batch left "
        "open, or give the option accumulate as many micro-batches as a rank has images",
        name_, batch, own_batch));
  }
  auto model = trainable_.model;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto& input = model.inputs[i];
    names.push_back(input.name);
    input.shape.clear();
    for (const auto size : net.graph.spec(inputs[i]).shape.dims())
      input.shape.push_back({size, ""});
  }
  onnx::ImportOptions options;
  options.states.insert(trainable_.states.begin(), trainable_.states.end());
  const auto import = onnx::import_model(model, options);
  return Transplant(net, import.graph).run(inputs, names, trainable_.states);
}

ModelConfig imported_model(const std::string& name, onnx::Model model,
                           const ImportedNetworkOptions& options) {
  auto network = std::make_shared<const ImportedNetwork>(name, std::move(model), options);
  ModelConfig config{.name = std::filesystem::path(name).stem().string(),
                     .architecture = Architecture::Given};
  config.size = network->size();
  config.in_channels = network->channels();
  config.classes = network->classes();
  config.maps = network->maps();
  config.network = std::move(network);
  validate(config);
  return config;
}

ModelConfig imported_model(const std::filesystem::path& file,
                           const ImportedNetworkOptions& options) {
  return imported_model(file.filename().string(), onnx::load_model(file), options);
}

const ImportedNetwork* imported_network(const ModelConfig& model) {
  return dynamic_cast<const ImportedNetwork*>(model.network.get());
}

void save_network(const std::filesystem::path& folder, const ModelConfig& model) {
  const auto* network = imported_network(model);
  if (network == nullptr) return;
  OutputLedger(folder).write(kModelFile, onnx::encode_model(network->model()));
}

}  // namespace triptych::training
