// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/cublaslt_calls.h"

#include "backends/cuda/library/nvidia_places.h"
#include "core/base/error.h"

namespace triptych::cuda {
namespace {

struct Opened {
  SharedLibrary library{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), nvidia_places()};
  CublasLtCalls calls{
      .create = library.find("cublasLtCreate"),
      .destroy = library.find("cublasLtDestroy"),
      .status_string = library.find("cublasLtGetStatusString"),
      .matmul = library.find("cublasLtMatmul"),
      .algo_cap_get = library.find("cublasLtMatmulAlgoCapGetAttribute"),
      .algo_get_heuristic = library.find("cublasLtMatmulAlgoGetHeuristic"),
      .matmul_desc_create = library.find("cublasLtMatmulDescCreate"),
      .matmul_desc_destroy = library.find("cublasLtMatmulDescDestroy"),
      .matmul_desc_set = library.find("cublasLtMatmulDescSetAttribute"),
      .preference_create = library.find("cublasLtMatmulPreferenceCreate"),
      .preference_destroy = library.find("cublasLtMatmulPreferenceDestroy"),
      .preference_set = library.find("cublasLtMatmulPreferenceSetAttribute"),
      .layout_create = library.find("cublasLtMatrixLayoutCreate"),
      .layout_destroy = library.find("cublasLtMatrixLayoutDestroy"),
      .layout_set = library.find("cublasLtMatrixLayoutSetAttribute"),
  };
};

const Opened& opened() {
  static const Opened instance;
  return instance;
}

}  // namespace

const std::string& cublaslt_problem() { return opened().library.problem(); }

const CublasLtCalls& cublaslt() {
  if (!cublaslt_problem().empty()) throw DeviceError("cuBLASLt: " + cublaslt_problem());
  return opened().calls;
}

}  // namespace triptych::cuda
