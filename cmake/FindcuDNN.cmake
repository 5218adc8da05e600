# cuDNN 9 or newer: the target cuDNN::cudnn, cuDNN_VERSION, and where it is not usable the reason in
# cuDNN_REASON. Looks beside the CUDA toolkit and where cuDNN_ROOT or the environment's CUDA_PATH
# says. Its headers include the CUDA runtime's.
# SPDX-License-Identifier: Apache-2.0
set(places ${CUDAToolkit_LIBRARY_ROOT} ENV CUDA_PATH /usr/local/cuda)
find_path(cuDNN_INCLUDE_DIR cudnn_graph.h HINTS ${places} PATH_SUFFIXES include)
find_path(cuDNN_RUNTIME_INCLUDE_DIR cuda_runtime_api.h
          HINTS ${cuDNN_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS} ${places} PATH_SUFFIXES include)
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${places} PATH_SUFFIXES lib64 lib)
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_RUNTIME_INCLUDE_DIR cuDNN_LIBRARY)

set(cuDNN_REASON "")
if(NOT cuDNN_INCLUDE_DIR)
  set(cuDNN_REASON "no cudnn_graph.h was found")
elseif(NOT cuDNN_LIBRARY)
  set(cuDNN_REASON "no libcudnn.so was found")
elseif(NOT cuDNN_RUNTIME_INCLUDE_DIR)
  set(cuDNN_REASON "its headers need cuda_runtime_api.h, which was not found")
endif()
if(cuDNN_INCLUDE_DIR)
  set(numbers "")
  file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version.h lines
       REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  foreach(part MAJOR MINOR PATCHLEVEL)
    string(REGEX MATCH "CUDNN_${part} +([0-9]+)" line "${lines}")
    list(APPEND numbers ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN numbers "." cuDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN
  REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR cuDNN_RUNTIME_INCLUDE_DIR
  VERSION_VAR cuDNN_VERSION REASON_FAILURE_MESSAGE "${cuDNN_REASON}")
if(NOT cuDNN_FOUND AND NOT cuDNN_REASON)
  set(cuDNN_REASON "version ${cuDNN_VERSION} is older than ${cuDNN_FIND_VERSION}")
endif()
if(cuDNN_FOUND AND NOT TARGET cuDNN::cudnn)
  add_library(cuDNN::cudnn SHARED IMPORTED)
  set_target_properties(cuDNN::cudnn PROPERTIES IMPORTED_LOCATION ${cuDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${cuDNN_INCLUDE_DIR};${cuDNN_RUNTIME_INCLUDE_DIR}")
endif()
