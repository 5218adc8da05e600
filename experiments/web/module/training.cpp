// Functions of a training run that the page calls in WebAssembly (messages.h). Pictures are bytes
// and numbers in memory.
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "experiments/web/module/messages.h"
#include "experiments/web/training_session.h"

namespace triptych {

void add_cpu_backends(std::vector<const Backend*>& list);

namespace web {
namespace {

std::unique_ptr<Device> open_cpu() {
  std::vector<const Backend*> backends;
  add_cpu_backends(backends);
  return backends.front()->open({});
}

struct Run {
  std::unique_ptr<Device> device = open_cpu();
  TrainingSession session;
  Prediction prediction = {};

  explicit Run(const SessionOptions& options) : session(*device, options) {}
};

std::optional<Run>& training_run() {
  static std::optional<Run> run;
  return run;
}

}  // namespace
}  // namespace web
}  // namespace triptych

extern "C" {

/// Begins anew: {"model", "seed", "batch"}.
const char* TRIPTYCH_EXPORT(train_begin)() {
  using namespace triptych::web;
  const auto request = triptych::web::request();
  const auto model = request.at("model").get<std::string>();
  training_run().emplace(SessionOptions{.model = model,
                                        .seed = request.at("seed").get<std::uint64_t>(),
                                        .batch = request.at("batch").get<std::int64_t>()});
  const auto& session = training_run()->session;
  return answer_with(
      {{"parameters", session.parameters()}, {"validation_images", session.validation_images()}});
}

const char* TRIPTYCH_EXPORT(train_step)() {
  using namespace triptych::web;
  auto& session = training_run().value().session;
  const float loss = session.step();
  return answer_with({{"step", session.steps()}, {"loss", loss}});
}

const char* TRIPTYCH_EXPORT(train_weights)() {
  using namespace triptych::web;
  const auto& session = training_run().value().session;
  return answer_with(
      {{"sha256", session.weights_sha256()}, {"subnormals", session.has_subnormals()}});
}

/// Looks at a validation image. Its picture, truth and classes are then at the next three.
const char* TRIPTYCH_EXPORT(train_predict)(std::size_t image) {
  using namespace triptych::web;
  auto& prediction = training_run().value().prediction;
  prediction = training_run()->session.predict(image);
  return answer_with({{"height", prediction.height}, {"width", prediction.width}});
}
const float* TRIPTYCH_EXPORT(train_image)() {
  return triptych::web::training_run().value().prediction.image.data();
}
const std::uint8_t* TRIPTYCH_EXPORT(train_truth)() {
  return triptych::web::training_run().value().prediction.truth.data();
}
const std::uint8_t* TRIPTYCH_EXPORT(train_classes)() {
  return triptych::web::training_run().value().prediction.classes.data();
}
}
