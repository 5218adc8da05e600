// NVRTC: the program's own compiler makes the modules.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "backends/cuda/program/driver.h"
#include "backends/cuda/program/nvrtc_options.h"

namespace triptych::cuda::program::calls {
namespace {

nvrtcResult refuse(nvrtcResult error, const char* call, Place place, std::string message) {
  Session::current().note(static_cast<cudaError_t>(error), call, place, std::move(message));
  return error;
}

/// The program. nullptr, with a finding: none.
RuntimeProgram* program_of(const char* call, Place place, nvrtcProgram program) {
  auto& all = Driver::current().programs;
  const auto found = all.find(program);
  if (found != all.end()) return &found->second;
  refuse(NVRTC_ERROR_INVALID_PROGRAM, call, place, "the program was not created, or was destroyed");
  return nullptr;
}

/// The program after a compilation. nullptr, with a finding: there was none, or it failed.
RuntimeProgram* compiled(const char* call, Place place, nvrtcProgram program) {
  auto* found = program_of(call, place, program);
  if (found == nullptr || !found->build.image.empty()) return found;
  refuse(NVRTC_ERROR_INVALID_PROGRAM, call, place,
         found->is_compiled ? "the program did not compile; nvrtcGetProgramLog has the reason"
                            : "call nvrtcCompileProgram first");
  return nullptr;
}

nvrtcResult give_size(const char* call, Place place, nvrtcProgram program, std::size_t* bytes) {
  const DriverCall scope(call);
  const auto* found = compiled(call, place, program);
  if (found == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = found->build.image.size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult give_image(const char* call, Place place, nvrtcProgram program, char* image) {
  const DriverCall scope(call);
  const auto* found = compiled(call, place, program);
  if (found == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  std::memcpy(image, found->build.image.c_str(), found->build.image.size() + 1);
  return NVRTC_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
nvrtcResult nvrtcCreateProgram(Place place, nvrtcProgram* program, const char* source,
                               const char* name, int count, const char* const* headers,
                               const char* const* include_names) {
  const DriverCall scope("nvrtcCreateProgram");
  if (program == nullptr || source == nullptr || count < 0) {
    return refuse(NVRTC_ERROR_INVALID_INPUT, "nvrtcCreateProgram", place,
                  "the program or its source is null");
  }
  RuntimeProgram made;
  made.request.name = name == nullptr || *name == '\0' ? "default_program" : name;
  made.request.source = source;
  for (int i = 0; i < count; ++i) {
    made.request.headers.emplace_back(include_names[i], headers[i]);
  }
  *program = new_driver_handle<nvrtcProgram>();
  Driver::current().programs[*program] = std::move(made);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(Place place, nvrtcProgram* program) {
  const DriverCall scope("nvrtcDestroyProgram");
  if (program_of("nvrtcDestroyProgram", place, *program) == nullptr) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  Driver::current().programs.erase(*program);
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcAddNameExpression(Place place, nvrtcProgram program, const char* expression) {
  constexpr auto kCall = "nvrtcAddNameExpression";
  const DriverCall scope(kCall);
  auto* found = program_of(kCall, place, program);
  if (found == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (found->is_compiled) {
    return refuse(NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, kCall, place,
                  "names are added before nvrtcCompileProgram");
  }
  found->request.expressions.emplace_back(expression);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(Place place, nvrtcProgram program, int count,
                                const char* const* options) {
  constexpr auto kCall = "nvrtcCompileProgram";
  const DriverCall scope(kCall);
  auto* found = program_of(kCall, place, program);
  if (found == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  auto& session = Session::current();
  auto& request = found->request;
  request.architecture = session.options.gpu->architecture();
  request.has_unwatched = session.options.sample > 1;
  const auto wrong = read_nvrtc_options({options, static_cast<std::size_t>(count)}, request);
  if (!wrong.empty()) {
    found->build.log = "nvrtc: error: " + wrong + "\n";
    return refuse(NVRTC_ERROR_INVALID_OPTION, kCall, place, wrong);
  }
  found->build = session.options.modules->build(request);
  found->is_compiled = true;
  return found->build.image.empty() ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(Place place, nvrtcProgram program, size_t* bytes) {
  const DriverCall scope("nvrtcGetProgramLogSize");
  const auto* found = program_of("nvrtcGetProgramLogSize", place, program);
  if (found == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = found->build.log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(Place place, nvrtcProgram program, char* log) {
  const DriverCall scope("nvrtcGetProgramLog");
  const auto* found = program_of("nvrtcGetProgramLog", place, program);
  if (found == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  std::memcpy(log, found->build.log.c_str(), found->build.log.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(Place place, nvrtcProgram program, size_t* bytes) {
  return give_size("nvrtcGetPTXSize", place, program, bytes);
}
nvrtcResult nvrtcGetPTX(Place place, nvrtcProgram program, char* image) {
  return give_image("nvrtcGetPTX", place, program, image);
}
nvrtcResult nvrtcGetCUBINSize(Place place, nvrtcProgram program, size_t* bytes) {
  return give_size("nvrtcGetCUBINSize", place, program, bytes);
}
nvrtcResult nvrtcGetCUBIN(Place place, nvrtcProgram program, char* image) {
  return give_image("nvrtcGetCUBIN", place, program, image);
}
nvrtcResult nvrtcGetLoweredName(Place place, nvrtcProgram program, const char* expression,
                                const char** name) {
  constexpr auto kCall = "nvrtcGetLoweredName";
  const DriverCall scope(kCall);
  const auto* found = compiled(kCall, place, program);
  if (found == nullptr) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  const auto& all = found->request.expressions;
  const auto at = static_cast<std::size_t>(std::ranges::find(all, expression) - all.begin());
  if (at == all.size()) {
    return refuse(NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID, kCall, place,
                  fmt::format("nvrtcAddNameExpression has not added \"{}\"", expression));
  }
  *name = found->build.symbols[at].c_str();
  return NVRTC_SUCCESS;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
