// A program of the systolic array that somebody wrote by hand: its arrays go from files into the
// DRAM, it runs, its results come back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "experiments/measure/array_trace.h"
#include "systolic/driver/driver.h"
#include "systolic/isa/listing.h"

namespace triptych::measure {

/// A .npy file of one array of the program. Without a name of the only one there is.
struct ArrayFile {
  std::string array;
  std::filesystem::path file;
};
/// From "x=in.npy" or "in.npy".
std::vector<ArrayFile> parse_array_files(const std::vector<std::string>& texts);

struct ProgramRequest {
  std::string source;  ///< the program's file, for messages
  mmu::Listing listing;
  mmu::MachineConfig machine;
  mmu::Simulation simulation = mmu::Simulation::Twin;
  std::optional<std::uint64_t> max_cycles;  ///< none: watchdog_cycles of the twin's cycles
  std::string waves;                        ///< FST file of the RTL. Empty: none
  std::string waves_name;                   ///< path in its save file. Empty: the same
  PeRecorder* pes = nullptr;                ///< receives every multiply-add, on the twin
};

struct ProgramRun {
  ArrayNode node;
  /// False: the RTL's stalls differ from the twin's, so that their times are unknown. Then
  /// node.report.stalls is empty.
  bool stalls_known = true;
  std::vector<Tensor> outputs;  ///< in the order of the listing's, with bf16 as float32
  std::string unexpected;       ///< the first difference from the text's .expect lines. Empty: none
};

/// The program's arrays of one kind.
std::vector<mmu::DramArray> arrays_of(const mmu::Listing& listing, bool inputs);

/// For each array the file that is for it. Throws InvalidArgument when a file is for none, or two
/// are for one. An array without a file has an empty path.
std::vector<std::filesystem::path> files_of(const ProgramRequest& request, bool inputs,
                                            const std::vector<ArrayFile>& files);

/// The text with the values of `inputs` (files_of) as lines .values, so that it needs no files.
/// Throws InvalidArgument for an input without values.
std::string with_values(const ProgramRequest& request, std::string_view text,
                        const std::vector<std::filesystem::path>& inputs);

/// Reads `inputs` (files_of), checks the program (check_program, check_order), runs it. Throws
/// InvalidArgument, IoError or UnsupportedError for a wrong program or file, DeviceError without
/// the RTL, NumericError for RTL that is wrong. A message that names instructions tells their
/// lines.
ProgramRun run_program(const ProgramRequest& request,
                       const std::vector<std::filesystem::path>& inputs);

/// When each unit works and why the array waits: a line each, a character for one cycle or for
/// several.
std::string timeline_text(const ProgramRun& run);

}  // namespace triptych::measure
