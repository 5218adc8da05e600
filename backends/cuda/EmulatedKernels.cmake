# SPDX-License-Identifier: Apache-2.0
# For g++: as C++, and for processors with fused multiply-add, which kernels are made of. The
# includes of a `counted` object see every access of a kernel.
# triptych_add_emulated_kernels(NAME SOURCES ... [OPTIONS ...])
function(triptych_add_emulated_kernels name)
  cmake_parse_arguments(ARG "" "" "SOURCES;OPTIONS" ${ARGN})
  set(copies)
  foreach(kernel IN LISTS ARG_SOURCES)
    set(copy ${CMAKE_CURRENT_BINARY_DIR}/${name}/${kernel}.cpp)
    file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"backends/cuda/${kernel}\"\n")
    list(APPEND copies ${copy})
  endforeach()
  add_library(triptych_cuda_${name} OBJECT ${copies})
  target_link_libraries(triptych_cuda_${name} PRIVATE triptych_flags triptych_host Boost::context)
  target_compile_options(triptych_cuda_${name} PRIVATE -Wno-unknown-pragmas ${ARG_OPTIONS})  # nvcc's unroll
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(triptych_cuda_${name} PRIVATE -march=x86-64-v3)
  endif()
  triptych_precompile_headers(triptych_cuda_${name})
endfunction()

# Each piece of straight code reports its beginning (emulation/kernel_pieces.cpp). Passes that copy, merge or
# move pieces are left out, so that warps part and meet where the source says.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(triptych_piece_options -O2 -fsanitize-coverage=trace-pc -fno-thread-jumps -fno-tree-dominator-opts
    -fno-tree-tail-merge -fno-crossjumping -fno-code-hoisting -fno-tree-pre -fno-gcse -fno-tree-ch -fno-ssa-phiopt
    -fno-tree-vectorize -fno-split-paths -fno-unswitch-loops -fno-partial-inlining -fno-ipa-cp-clone -fno-peel-loops
    -freorder-blocks-algorithm=simple)
else()
  set(triptych_piece_options -O1 -fsanitize-coverage=bb,no-prune,trace-pc)
endif()
list(APPEND triptych_piece_options -fno-optimize-sibling-calls)
