// `triptych synthesize`: writes the generated membrane images and masks as a data set.
// SPDX-License-Identifier: Apache-2.0

#include "core/base/speech.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/page/json.h"
#include "experiments/training/data/synthetic.h"

namespace triptych::app {
namespace {

struct SynthesizeOptions {
  std::string out;
  std::int64_t images = 40;
  std::int64_t size = 256;
  std::uint64_t seed = 0;
};

}  // namespace

void add_synthesize_command(Command& app, Context& context) {
  auto options = std::make_shared<SynthesizeOptions>();
  auto command =
      app.add_subcommand("synthesize", "Write generated membrane images with their masks");
  command.add_option("--out", options->out, "folder for images/ and masks/")
      .output_folder()
      .required();
  command.add_option("--images", options->images, "how many")
      .check(whole_from(1, 100000))
      .capture_default_str();
  command.add_option("--size", options->size, "height and width")
      .check(whole_from(16, 8192))
      .capture_default_str();
  command.add_option("--seed", options->seed, "of the images")
      .check(whole_from(0, kMaxSeed))
      .capture_default_str();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    segmentation::save_synthetic_dataset(
        options->out, {.size = {options->size, options->size}, .seed = options->seed},
        options->images);
    if (context.json) {
      print_document("synthesize", page::Json::array({{{"folder", options->out},
                                                       {"images", options->images},
                                                       {"size", options->size},
                                                       {"seed", options->seed}}}));
    } else {
      print_text("{} images and masks written to {}; train on them with --data {} --invert\n",
                 options->images, options->out, options->out);
    }
  });
}

}  // namespace triptych::app
