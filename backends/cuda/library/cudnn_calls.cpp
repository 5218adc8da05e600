// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/cudnn_calls.h"

#include "backends/cuda/library/nvidia_places.h"
#include "core/base/error.h"

namespace triptych::cuda::cudnn {
namespace {

struct Opened {
  SharedLibrary library{"libcudnn.so." + std::to_string(CUDNN_MAJOR), nvidia_places()};
  Calls calls{
      .create = library.find("cudnnCreate"),
      .destroy = library.find("cudnnDestroy"),
      .error_string = library.find("cudnnGetErrorString"),
      .last_error_string = library.find("cudnnGetLastErrorString"),
      .version = library.find("cudnnGetVersion"),
      .set_stream = library.find("cudnnSetStream"),
      .create_descriptor = library.find("cudnnBackendCreateDescriptor"),
      .destroy_descriptor = library.find("cudnnBackendDestroyDescriptor"),
      .execute = library.find("cudnnBackendExecute"),
      .finalize = library.find("cudnnBackendFinalize"),
      .get_attribute = library.find("cudnnBackendGetAttribute"),
      .set_attribute = library.find("cudnnBackendSetAttribute"),
  };
};

const Opened& opened() {
  static const Opened instance;
  return instance;
}

}  // namespace

const std::string& library_problem() { return opened().library.problem(); }

const Calls& calls() {
  if (!library_problem().empty()) throw DeviceError("cuDNN: " + library_problem());
  return opened().calls;
}

}  // namespace triptych::cuda::cudnn
