# NCCL 2: the target NCCL::nccl, NCCL_VERSION, and where it is not usable the reason in NCCL_REASON.
# Looks beside the CUDA toolkit and where NCCL_ROOT or the environment's CUDA_PATH says.
# SPDX-License-Identifier: Apache-2.0
set(places ${CUDAToolkit_LIBRARY_ROOT} ENV CUDA_PATH /usr/local/cuda)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${places} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${places} PATH_SUFFIXES lib64 lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

set(NCCL_REASON "")
if(NOT NCCL_INCLUDE_DIR)
  set(NCCL_REASON "no nccl.h was found")
elseif(NOT NCCL_LIBRARY)
  set(NCCL_REASON "no libnccl.so was found")
endif()
if(NCCL_INCLUDE_DIR)
  set(numbers "")
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h lines REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
  foreach(part MAJOR MINOR PATCH)
    string(REGEX MATCH "NCCL_${part} +([0-9]+)" line "${lines}")
    list(APPEND numbers ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN numbers "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR
  VERSION_VAR NCCL_VERSION REASON_FAILURE_MESSAGE "${NCCL_REASON}")
if(NOT NCCL_FOUND AND NOT NCCL_REASON)
  set(NCCL_REASON "version ${NCCL_VERSION} is older than ${NCCL_FIND_VERSION}")
endif()
if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl SHARED IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
