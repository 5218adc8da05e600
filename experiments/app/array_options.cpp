// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/array_options.h"

namespace triptych::app {

void add_array_options(Command& command, training::DataConfig& data) {
  command.add_option("--input", data.inputs,
                     "of an ONNX file: [NAME=]FILE.npy for each of its inputs, a row per example");
  command.add_option("--target", data.target, ".npy of what is wanted of these rows")
      .only_with("--input");
}

void refuse_options_of_images(Command& command) {
  command.refuse_with("--input", {"--data",
                                  "--images",
                                  "--masks",
                                  "--mask-pattern",
                                  "--list",
                                  "--train-split",
                                  "--validation-split",
                                  "--labels",
                                  "--normalize",
                                  "--cache",
                                  "--invert",
                                  "--synthetic-images",
                                  "--base",
                                  "--depth",
                                  "--size",
                                  "--in-channels",
                                  "--classes",
                                  "--class-weights",
                                  "--border-weight",
                                  "--border-sigma",
                                  "--augmentation",
                                  "--tile",
                                  "--margin",
                                  "--mask-pictures"});
}

}  // namespace triptych::app
