// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/base/error.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

void attach_network(RunConfig& config, const std::filesystem::path& file) {
  auto& model = config.model;
  if (model.architecture != Architecture::Given || model.network) return;
  ImportedNetworkOptions options = {
      .frozen = config.network.frozen, .loss = config.training.loss, .rows = config.network.rows};
  if (options.rows.empty()) {
    options.size = model.size;
    options.channels = model.in_channels;
  }
  const auto found = imported_model(file, options);
  const auto& network = *imported_network(found);
  const bool same = network.sha256() == config.network.sha256 && found.classes == model.classes &&
                    found.maps == model.maps;
  if (!same) {
    throw IoError(fmt::format(
        "\"{}\" is not the network of this run: its SHA-256 is {}, that of the run {}; bring back "
        "the file that `triptych train` wrote",
        file.string(), network.sha256(), config.network.sha256));
  }
  model.network = found.network;
}

}  // namespace triptych::training
