// Loading of runs by commands, whose users hear what load_run notes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "experiments/training/run_folder.h"

namespace triptych::app {

/// Prints `note` on standard error, unless it is empty.
void print_note(const std::string& note);

/// Prints the run's notes on standard error.
void print_notes(const training::SavedRun& run);

/// training::load_trained with the run's notes printed.
training::SavedRun load_noted_run(const std::filesystem::path& folder, bool previous);

/// The configuration of `run` with the images of the folder `data` and the list `list` instead of
/// its own; empty: its own.
training::RunConfig with_images(const training::SavedRun& run, const std::string& data,
                                const std::string& list);

}  // namespace triptych::app
