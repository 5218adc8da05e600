// `triptych synthesize`: writes the generated membrane images and masks as a data set.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/folder_lock.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/page/json.h"
#include "experiments/training/data/synthetic.h"
#include "experiments/training/runs_on_data.h"

namespace triptych::app {
namespace {

struct SynthesizeOptions {
  std::string out;
  std::int64_t images = 40;
  std::int64_t size = 256;
  std::uint64_t seed = 0;
};

/// Data that a run trained on is not replaced by other data unless its user says so: the run could
/// not be resumed.
void require_unused(const SynthesizeOptions& options, const segmentation::SyntheticOptions& data) {
  const auto runs = training::runs_on(options.out);
  if (runs.empty() || !segmentation::replaces_dataset(options.out, data, options.images)) return;
  auto names = mapped<std::string>(
      runs, [](const auto& run) { return fmt::format("\"{}\"", run.string()); });
  const auto trained = fmt::format("these runs trained on the images in \"{}\": {}", options.out,
                                   fmt::join(names, ", "));
  if (overwriting_allowed())
    return say_note(trained + "; they cannot be resumed with other images");
  throw InvalidArgument(trained +
                        "; other images would end them; give the option out another folder, or "
                        "give the option overwrite");
}

void synthesize(const SynthesizeOptions& options, const Context& context) {
  const segmentation::SyntheticOptions data = {.size = {options.size, options.size},
                                               .seed = options.seed};
  const FolderLock lock(options.out);
  require_unused(options, data);
  segmentation::save_synthetic_dataset(options.out, data, options.images);
  if (context.json) {
    print_document("synthesize", page::Json::array({{{"folder", options.out},
                                                     {"images", options.images},
                                                     {"size", options.size},
                                                     {"seed", options.seed}}}));
  } else {
    print_text("{} and {} written to {}; train on them with --data {} --invert\n",
               counted(options.images, "image"), counted(options.images, "mask"), options.out,
               options.out);
  }
}

}  // namespace

void describe_synthesize(Command& command, Context& context) {
  auto options = std::make_shared<SynthesizeOptions>();
  command.add_option("--out", options->out, "folder for images/ and masks/")
      .output_folder()
      .required();
  command.add_option("--images", options->images, "number of images").check(whole_from(1, 100000));
  command.add_option("--size", options->size, "height and width in pixels")
      .check(whole_from(16, 8192));
  add_run_option(command, "--seed", options->seed, "seed of the images");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { synthesize(*options, context); });
}

}  // namespace triptych::app
