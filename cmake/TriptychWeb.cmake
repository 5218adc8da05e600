# The project as seen by the toolchain wasm32.cmake: what computes on pages. The same libraries, from
# the same lists; what a browser has not (threads, files, processes) is not among them.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(TRIPTYCH_PRECOMPILED_HEADERS OFF)
# Headers of libraries that need no compilation, without those of the host's C library beside them.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(pair fmt=fmt/format.h nlohmann_json=nlohmann/json.hpp hwy=hwy/highway.h)
  string(REGEX MATCH "^(.*)=(.*)/(.*)$" ignored ${pair})
  find_path(${CMAKE_MATCH_1}_FOLDER ${CMAKE_MATCH_2}/${CMAKE_MATCH_3} PATHS /usr/include REQUIRED)
  file(CREATE_LINK ${${CMAKE_MATCH_1}_FOLDER}/${CMAKE_MATCH_2} ${headers}/${CMAKE_MATCH_2} SYMBOLIC)
  add_library(${CMAKE_MATCH_1} INTERFACE)
  target_include_directories(${CMAKE_MATCH_1} SYSTEM INTERFACE ${headers})
  add_library(${CMAKE_MATCH_1}::${CMAKE_MATCH_1} ALIAS ${CMAKE_MATCH_1})
endforeach()
target_compile_definitions(fmt INTERFACE FMT_HEADER_ONLY)
# One instruction set, which needs no choosing and no code of the library's.
target_compile_definitions(hwy INTERFACE HWY_COMPILE_ONLY_STATIC)
target_compile_options(hwy INTERFACE -msimd128)
add_library(Threads::Threads INTERFACE IMPORTED)  # there are none
add_library(Eigen3::Eigen INTERFACE IMPORTED)  # of steps that are left out
# Sections that nothing reaches are dropped; locks of the one thread there is are nothing.
target_compile_options(triptych_flags INTERFACE -Os -ffunction-sections -fdata-sections)
add_compile_options("SHELL:-include ${PROJECT_SOURCE_DIR}/experiments/web/module/one_thread.h")
add_compile_definitions(_WASI_EMULATED_MMAN _WASI_EMULATED_SIGNAL)
# The module is kept in the repository: its bytes must not depend on folders, nor on lines of comments.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}/=
  -D__LINE__=0 -Wno-builtin-macro-redefined)

foreach(room core/base core/tensor core/ops core/graph core/autodiff core/runtime core/nn systolic
             backends/host backends/cpu backends/systolic)
  add_subdirectory(${room} EXCLUDE_FROM_ALL)
endforeach()
# The names of a system that has no files.
target_compile_options(triptych_host PUBLIC "SHELL:-include ${PROJECT_SOURCE_DIR}/experiments/web/stand_in/system.h")
target_compile_options(triptych_mmu_isa PRIVATE "SHELL:-include ${PROJECT_SOURCE_DIR}/experiments/web/stand_in/names.h")
add_subdirectory(experiments/web/module)
