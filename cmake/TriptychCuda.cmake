# The CUDA toolkit, when it is wanted and there: sets TRIPTYCH_WITH_CUDA. Without it the backend
# "cuda" says so, and its kernels run in the emulation alone.
# SPDX-License-Identifier: Apache-2.0

set(TRIPTYCH_ENABLE_CUDA AUTO CACHE STRING
    "Build the GPU backend: ON, OFF, or AUTO (when nvcc and a GPU are found, for that GPU)")
set(TRIPTYCH_CUDA_ARCHITECTURES "" CACHE STRING
    "GPU architectures to compile kernels for, as CMAKE_CUDA_ARCHITECTURES; empty: with AUTO those of this machine's GPUs, else all")

# The architectures of this machine's GPUs: "90a-real;80-real".
function(triptych_find_gpus result)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${found}")
  list(REMOVE_DUPLICATES found)
  list(TRANSFORM found REPLACE "\\." "")
  list(TRANSFORM found APPEND -real)
  list(TRANSFORM found REPLACE "^90-" "90a-")  # has wgmma
  if(failed)
    set(found "")
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

set(TRIPTYCH_WITH_CUDA OFF)
if(TRIPTYCH_ENABLE_CUDA)
  find_program(TRIPTYCH_NVCC nvcc PATHS /usr/local/cuda/bin)
  triptych_find_gpus(gpus)
  if(TRIPTYCH_NVCC AND (gpus OR NOT TRIPTYCH_ENABLE_CUDA STREQUAL AUTO))
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${TRIPTYCH_NVCC})
    endif()
    if(TRIPTYCH_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES ${TRIPTYCH_CUDA_ARCHITECTURES})
    elseif(TRIPTYCH_ENABLE_CUDA STREQUAL AUTO)
      set(CMAKE_CUDA_ARCHITECTURES ${gpus})
    else()
      set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90a-real 90-virtual)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_STANDARD 20)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(TRIPTYCH_WITH_CUDA ON)
  elseif(NOT TRIPTYCH_ENABLE_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "TRIPTYCH_ENABLE_CUDA is ${TRIPTYCH_ENABLE_CUDA}, but no nvcc was found; "
                        "put it on the PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()

# Answer of `triptych devices` in a build without it.
set(TRIPTYCH_REMEDY_CUDA "configure with -DTRIPTYCH_ENABLE_CUDA=ON")
if(NOT TRIPTYCH_ENABLE_CUDA)
  set(TRIPTYCH_MISSING_CUDA "it was configured with -DTRIPTYCH_ENABLE_CUDA=OFF")
elseif(TRIPTYCH_NVCC)
  set(TRIPTYCH_MISSING_CUDA "no GPU was found when it was configured")
else()
  set(TRIPTYCH_MISSING_CUDA "no nvcc was found when it was configured")
  string(PREPEND TRIPTYCH_REMEDY_CUDA "install the CUDA toolkit, then ")
endif()

# NVIDIA's libraries, each used where it is there. cuDNN also without a GPU backend: what it would
# run on a GPU is planned, and tested, from a description of that GPU.
# CMAKE_DISABLE_FIND_PACKAGE_cuDNN and CMAKE_DISABLE_FIND_PACKAGE_NCCL leave one out.
if(TRIPTYCH_ENABLE_CUDA)
  find_package(cuDNN 9 QUIET)
endif()
if(TRIPTYCH_WITH_CUDA)
  find_package(NCCL 2 QUIET)
endif()
# Answer of `triptych doctor` about each: its version, or why it is not there.
foreach(library cuDNN NCCL cuBLASLt)
  if(library STREQUAL cuBLASLt)
    set(${library}_REASON "the CUDA toolkit has no libcublasLt.so")
    if(TARGET CUDA::cublasLt)
      set(${library}_FOUND ON)
      set(${library}_VERSION ${CUDAToolkit_VERSION})
    endif()
  endif()
  if(CMAKE_DISABLE_FIND_PACKAGE_${library})
    set(${library}_REASON "it was left out when this build was configured")
  endif()
  string(TOUPPER ${library} name)
  if(${library}_FOUND)
    set(TRIPTYCH_LIBRARY_${name} "${${library}_VERSION}")
    set(TRIPTYCH_MISSING_${name} "")
  else()
    set(TRIPTYCH_LIBRARY_${name} "")
    set(TRIPTYCH_MISSING_${name} "${${library}_REASON}")
  endif()
endforeach()
