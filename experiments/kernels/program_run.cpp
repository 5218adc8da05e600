// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/program_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <future>
#include <map>

#include "core/base/error.h"
#include "core/io/temporary_folder.h"
#include "experiments/kernels/program_module.h"
#include "experiments/kernels/registers.h"

namespace triptych::kernels {
namespace {

/// Takes the standard output of this process for a while, in a file: a confined process has no
/// memory files.
class TakenOutput {
 public:
  TakenOutput(bool takes, const std::filesystem::path& file) {
    if (!takes) return;
    std::fflush(stdout);
    taken_ = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    own_ = dup(STDOUT_FILENO);
    if (taken_ < 0 || own_ < 0) throw Error("cannot take the program's output");
    dup2(taken_, STDOUT_FILENO);
  }
  TakenOutput(const TakenOutput&) = delete;
  TakenOutput& operator=(const TakenOutput&) = delete;
  ~TakenOutput() {
    give_back();
    if (taken_ >= 0) close(taken_);
  }

  /// Text until now. Empty where nothing is taken.
  std::string text() {
    if (taken_ < 0) return {};
    give_back();
    std::string all;
    lseek(taken_, 0, SEEK_SET);
    std::array<char, 4096> part{};
    for (auto got = ::read(taken_, part.data(), part.size()); got > 0;
         got = ::read(taken_, part.data(), part.size())) {
      all.append(part.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  void give_back() {
    if (own_ < 0) return;
    std::fflush(stdout);
    dup2(own_, STDOUT_FILENO);
    close(own_);
    own_ = -1;
  }

  int taken_ = -1, own_ = -1;
};

}  // namespace

ProgramRun run_program(const ProgramRequest& request) {
  const TemporaryFolder folder("program");
  ProgramRun run;
  run.gpu = &cuda::emulation::find_gpu(request.gpu);
  auto source = request.source;
  source.architecture = 10 * run.gpu->architecture();
  source.has_unwatched = request.options.sample > 1 && !source.debugs;
  std::future<std::map<std::string, int>> registers;
  if (!source.debugs) {
    registers = std::async(std::launch::async, find_registers,
                           RegisterQuery{.files = source.files,
                                         .instances = {},
                                         .options = source.options,
                                         .contract = source.contract,
                                         .architecture = run.gpu->architecture()});
  }
  run.compiler_warnings = compile_program(source, folder.path());
  std::vector<std::string> words = {source.files.front().string()};
  words.insert(words.end(), request.words.begin(), request.words.end());
  auto options = request.options;
  options.gpu = run.gpu;
  // As long as the program: its threads may go on.
  static const auto modules = module_builder();
  options.modules = modules.get();
  if (registers.valid()) options.registers = registers.get();
  TakenOutput output(request.takes_output, folder.path() / "output");
  run.report = cuda::program::run(folder.path(), std::move(words), options);
  run.output = output.text();
  return run;
}

}  // namespace triptych::kernels
