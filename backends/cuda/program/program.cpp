// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/program.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <pthread.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <utility>

#include "core/base/error.h"

namespace triptych::cuda::program {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 20;

struct Start {
  std::filesystem::path folder;
  std::vector<std::string> words;
  std::exception_ptr error;
};

void* open_library(const std::filesystem::path& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw IoError(fmt::format("\"{}\" cannot be opened: {}", file.string(), dlerror()));
  }
  return handle;
}

/// Opens the host part, whose global objects are made now, and calls main.
int call_main(const Start& start) {
  void* bridge = open_library(start.folder / kBridgeLibrary);
  auto* bind =
      reinterpret_cast<unsigned (*)(const Runtime*)>(dlsym(bridge, "triptych_bind_runtime"));
  if (bind == nullptr || bind(&runtime_table()) != kRuntimeVersion) {
    throw IoError("the program was built by another version of Triptych");
  }
  void* host = open_library(start.folder / kHostLibrary);
  auto* main = reinterpret_cast<int (*)(int, char**)>(dlsym(host, "main"));
  if (main == nullptr) throw InvalidArgument("the program has no function main");
  static std::vector<std::string> words;
  static std::vector<char*> pointers;
  words = start.words;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return main(static_cast<int>(words.size()), pointers.data());
}

void* run_thread(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  auto& session = Session::current();
  watch_host_signals();
  try {
    const int status = call_main(start);
    session.end(status, "");
  } catch (const Error&) {
    start.error = std::current_exception();
    session.end(1, "");
  } catch (const std::exception& error) {
    session.end(134, fmt::format("an exception that nothing catches: {}", error.what()));
  } catch (...) {
    session.end(134, "an exception that nothing catches");
  }
}

}  // namespace

ProgramReport run(const std::filesystem::path& folder, std::vector<std::string> words,
                  const ProgramOptions& options) {
  auto& session = Session::current();
  session.options = options;
  session.library = std::make_unique<plain::KernelLibrary>(folder / kKernelLibrary);
  Start start = {folder, std::move(words), nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread{};
  const int failed = pthread_create(&thread, &attributes, run_thread, &start);
  pthread_attr_destroy(&attributes);
  if (failed != 0) throw Error("cannot start a thread for the program");
  pthread_detach(thread);
  session.wait_for_end();
  std::cout.flush();
  std::fflush(nullptr);
  if (start.error) std::rethrow_exception(start.error);
  return std::move(session.report);
}

}  // namespace triptych::cuda::program
