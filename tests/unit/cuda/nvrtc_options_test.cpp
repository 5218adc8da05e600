// Options of nvrtcCompileProgram: their spellings, and those that are refused.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/nvrtc_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace triptych::cuda::program {
namespace {

using Words = std::vector<const char*>;

std::string mistake_in(const Words& words) {
  ModuleRequest request;
  return read_nvrtc_options(words, request);
}

TEST(NvrtcOptions, reach_the_compiler_in_all_spellings) {
  ModuleRequest request;
  const Words words = {"-DN=3",          "-D",  "TILE=4",    "--define-macro=A=1", "-Iinclude",
                       "--include-path", "lib", "-UN",       "-include=first.h",   "-G",
                       "-std=c++14",     "-w",  "--ftz=true"};
  EXPECT_EQ(read_nvrtc_options(words, request), "");
  EXPECT_EQ(request.options, (std::vector<std::string>{"-DN=3", "-DTILE=4", "-DA=1", "-Iinclude",
                                                       "-Ilib", "-UN", "-include", "first.h"}));
  EXPECT_TRUE(request.contract);
  EXPECT_FALSE(request.for_both);
}

TEST(NvrtcOptions, set_the_architecture_and_the_contraction) {
  ModuleRequest request;
  const Words words = {"-arch=sm_80", "--fmad=false", "-default-device"};
  EXPECT_EQ(read_nvrtc_options(words, request), "");
  EXPECT_EQ(request.architecture, 80);
  EXPECT_FALSE(request.contract);
  EXPECT_TRUE(request.for_both);
  const Words virtual_one = {"--gpu-architecture", "compute_90a"};
  EXPECT_EQ(read_nvrtc_options(virtual_one, request), "");
  EXPECT_EQ(request.architecture, 90);
}

TEST(NvrtcOptions, are_refused_by_name) {
  EXPECT_EQ(mistake_in({"-O3"}), "the option \"-O3\" is not emulated");
  EXPECT_EQ(mistake_in({"-arch"}), "the option \"-arch\" needs a value");
  EXPECT_EQ(mistake_in({"--gpu-architecture=native"}),
            "\"native\" is no architecture such as sm_90 or compute_90");
  EXPECT_EQ(mistake_in({"--std=c++98"}), "\"c++98\" is no version of C++ from c++03 to c++20");
  EXPECT_EQ(mistake_in({"--fmad=off"}), "\"off\" is neither true nor false");
}

}  // namespace
}  // namespace triptych::cuda::program
