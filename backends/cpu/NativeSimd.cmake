# SPDX-License-Identifier: Apache-2.0
# With TRIPTYCH_SIMD_LEVELS=NATIVE: compiles this directory for the best of the instruction sets of simd.h that
# this processor has. TRIPTYCH_NATIVE_SIMD says whether there is one. A processor without it cannot run the program.
set(TRIPTYCH_NATIVE_SIMD OFF)
if(NOT TRIPTYCH_SIMD_LEVELS STREQUAL NATIVE OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()
include(CheckCXXSourceRuns)
# Sets `result` when this processor has all of these.
function(triptych_check_processor result)
  list(TRANSFORM ARGN REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")" OUTPUT_VARIABLE conditions)
  list(JOIN conditions " && " condition)
  check_cxx_source_runs("int main() { return ${condition} ? 0 : 1; }" ${result})
endfunction()
triptych_check_processor(TRIPTYCH_PROCESSOR_HAS_AVX2 avx2 fma bmi bmi2 popcnt)
triptych_check_processor(TRIPTYCH_PROCESSOR_HAS_AVX512 avx512f avx512bw avx512dq avx512vl avx512cd avx2 fma)
if(TRIPTYCH_PROCESSOR_HAS_AVX512)
  add_compile_options(-march=x86-64-v4 -maes -mpclmul -mprefer-vector-width=512)
  set(TRIPTYCH_NATIVE_SIMD ON)
elseif(TRIPTYCH_PROCESSOR_HAS_AVX2)
  add_compile_options(-march=x86-64-v3 -maes -mpclmul)
  set(TRIPTYCH_NATIVE_SIMD ON)
endif()
