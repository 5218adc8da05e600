# The CUDA toolkit, when it is there: sets TRIPTYCH_WITH_CUDA. Without it the backend "cuda" says so,
# and its kernels run in the emulation alone.

set(TRIPTYCH_ENABLE_CUDA AUTO CACHE STRING "Build the GPU backend: ON, OFF, or AUTO (when nvcc is found)")
set(TRIPTYCH_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90a" CACHE STRING
    "GPU architectures to compile kernels for, as CMAKE_CUDA_ARCHITECTURES")

set(TRIPTYCH_WITH_CUDA OFF)
if(TRIPTYCH_ENABLE_CUDA)
  find_program(TRIPTYCH_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(TRIPTYCH_NVCC)
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${TRIPTYCH_NVCC})
    endif()
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES ${TRIPTYCH_CUDA_ARCHITECTURES})
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
