// The calls of cuDNN, from the library that is found when the program runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn_graph.h>

#include <string>

namespace triptych::cuda::cudnn {

struct Calls {
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error_string;
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendExecute) execute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendSetAttribute) set_attribute;
};

/// The reason against a call of cuDNN. Empty: none.
const std::string& library_problem();

/// Throws DeviceError with the problem, if there is one.
const Calls& calls();

}  // namespace triptych::cuda::cudnn
