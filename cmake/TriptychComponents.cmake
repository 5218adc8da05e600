# The components of find_package(Triptych): libraries, the components below, and the packages that a consumer
# needs besides. They stand after those that they use.
# SPDX-License-Identifier: Apache-2.0

set(TRIPTYCH_COMPONENTS core cpu cuda systolic parallel training)

set(TRIPTYCH_core_LIBRARIES base tensor ops graph autodiff runtime nn conformance)
set(TRIPTYCH_core_PACKAGES "fmt")

set(TRIPTYCH_cpu_LIBRARIES host cpu)
set(TRIPTYCH_cpu_USES core)
set(TRIPTYCH_cpu_PACKAGES "Threads" "hwy CONFIG")

set(TRIPTYCH_cuda_LIBRARIES cuda)
set(TRIPTYCH_cuda_USES core cpu)  # the library host
set(TRIPTYCH_cuda_PACKAGES "TBB" "Boost 1.74 CONFIG COMPONENTS context")
if(TRIPTYCH_WITH_CUDA)
  list(APPEND TRIPTYCH_cuda_PACKAGES "CUDAToolkit")
endif()

set(TRIPTYCH_systolic_LIBRARIES mmu_isa mmu_dram mmu_twin mmu_sim mmu_driver systolic)
set(TRIPTYCH_systolic_USES core)
set(TRIPTYCH_systolic_PACKAGES "Threads")
if(TARGET triptych_verilated)
  list(APPEND TRIPTYCH_systolic_PACKAGES "ZLIB")
endif()

set(TRIPTYCH_parallel_LIBRARIES collectives comm mpi nccl strategies cluster)
set(TRIPTYCH_parallel_USES core)
set(TRIPTYCH_parallel_PACKAGES "Threads")
if(MPI_CXX_FOUND)
  list(APPEND TRIPTYCH_parallel_PACKAGES "MPI COMPONENTS CXX")
endif()
if(TRIPTYCH_WITH_CUDA)
  list(APPEND TRIPTYCH_parallel_PACKAGES "CUDAToolkit")
endif()

set(TRIPTYCH_training_LIBRARIES io onnx launch backends segmentation training)
set(TRIPTYCH_training_USES core cpu cuda systolic parallel)
set(TRIPTYCH_training_PACKAGES "PNG" "TIFF 4.5" "JPEG" "OpenSSL COMPONENTS Crypto" "Protobuf")
