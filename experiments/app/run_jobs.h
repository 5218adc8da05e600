// The images that `triptych run` gets, and the files that it writes for each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/training/prediction_files.h"

namespace triptych::app {

/// An image, a section of a stack or a whole stack, and its files, one of each kind.
struct Job {
  std::filesystem::path input;
  std::int64_t page = 0;
  std::int64_t pages = 1;  ///< of the input
  bool whole_stack = false;
  std::vector<std::filesystem::path> outputs = {};

  bool section() const { return pages > 1 && !whole_stack; }
  std::string name() const;
};

struct OutputKinds {
  std::vector<training::PredictionFile> files;
  training::PictureFormat format;
  bool stack;  ///< one file for all sections of a stack
};

/// The kinds of files in a list, each once. Throws InvalidArgument for another word.
std::vector<training::PredictionFile> kinds_in(const std::string& text);

/// The images among `inputs` and those of its folders. They are protected from now on (keep_input).
std::vector<std::filesystem::path> input_files(const std::vector<std::string>& inputs);

/// The format that the file name `out` asks for, or nothing for the name of a folder. Throws
/// InvalidArgument for the name of another kind of file.
std::optional<training::PictureFormat> format_named(const std::filesystem::path& out);

/// Throws InvalidArgument where a file would overwrite another one, or one that this program did
/// not write.
std::vector<Job> jobs_of(const std::vector<std::filesystem::path>& inputs,
                         const std::filesystem::path& out, const OutputKinds& kinds);

/// Prints a note where the sections of a stack get their own files.
void note_sections(const std::vector<Job>& jobs);

}  // namespace triptych::app
