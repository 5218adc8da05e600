// The options of `triptych kernel`, and its runs of whole CUDA programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/app/confinement.h"
#include "experiments/app/options.h"
#include "experiments/kernels/debugger.h"
#include "experiments/kernels/kernel_run.h"
#include "experiments/kernels/program_run.h"

namespace triptych::app {

/// Keys of the GPUs that a whole program may ask about. The first is the default.
std::vector<std::string> gpu_names();

struct KernelCommand {
  std::string file;
  kernels::KernelRunRequest run;
  std::vector<std::string> outputs, expected;
  double tolerance = 1e-4;
  std::string library;  ///< of build
  std::vector<std::string> defines, includes;
  std::vector<std::string> pre_includes;  ///< headers in front of each source
  std::vector<std::string> sources;       ///< further files of a whole program
  std::string gpu = gpu_names().front();
  int gpus = 1;  ///< of a whole program
  bool no_contraction = false, brief = false, strict = false, module = false;
  bool debugs = false;  ///< the kernels report their lines and variables
  Confinement confine = Confinement::None;
};

/// Options for a compiler.
std::vector<std::string> compiler_options(const KernelCommand& options);

/// True when the file is to run as a whole: it launches its kernels itself, and no option describes
/// a launch.
bool is_program(const KernelCommand& options);

/// The same for a page, which may choose kernels of a program.
bool is_unlaunched_program(const KernelCommand& options);

/// Adds the file and the options of a launch. `needs_file`: as an argument that must be given.
void add_launch_options(Command& command, KernelCommand& options, bool needs_file = false);

/// An option of up to three numbers with commas between them.
void add_sizes(Command command, const std::string& name, std::vector<std::int64_t>& sizes,
               const std::string& help, std::int64_t least = 1);

/// Compiles the file, and passes the compiler's warnings on.
void compile_kernel_file(const KernelCommand& options, const std::filesystem::path& library);

/// Registers of its kernels on the GPU of the options, where nvcc is installed.
std::map<std::string, int> kernel_registers(const KernelCommand& options);

/// Which blocks the counters cover, unless they cover all.
void print_sample(const KernelCommand& options);

/// The fault, its place and the line of source.
void print_fault(const KernelFault& fault);

/// The faults after which the kernels continued, and their number.
void print_noted(const kernels::NotedFaults& noted);

/// A finding of the document for a fault.
page::Json fault_json(const KernelFault& fault);
page::Json fault_json(const cuda::emulation::NotedFault& noted);

/// Adds the number of faults that the findings do not list to the result of a run.
void add_unlisted(page::Json& result, const kernels::NotedFaults& noted);

/// "4=c.npy" as argument and file. The argument of "c.npy" is empty.
std::pair<std::string, std::string> argument_and_file(const std::string& text);

/// The same with another file.
std::string with_file(const std::string& text, const std::string& file);

/// Throws where an output cannot be written.
void require_writable_outputs(const KernelCommand& options);

/// `kernel run` in a confined process. A fault of the kernel leaves no outputs.
void run_confined(const KernelCommand& options, Context& context);

/// Words of a session of `kernel debug`.
struct DebugScript {
  std::vector<std::string> breakpoints, commands;
  std::int64_t lines = 0;  ///< to show behind the first stop, without commands
};

/// Carries the words out, or asks for commands on a terminal. Returns {"lines", "complete",
/// "stops", "values"}. `json`: prints nothing.
page::Json run_debug_session(const cuda::plain::LineTrace& trace, const DebugScript& script,
                             bool json);

/// Adds `kernel debug`.
Command add_debug(Command& kernel, Context& context);

/// The run of a whole program.
kernels::ProgramRequest program_request(const KernelCommand& options);

/// Compiles the file as a module for the driver API, and writes it.
void build_module(const KernelCommand& options, bool json);

/// Compiles and runs it, and prints its counters and findings.
void run_program(const KernelCommand& options, Context& context);

}  // namespace triptych::app
