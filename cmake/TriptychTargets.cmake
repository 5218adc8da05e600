# One target per folder of the plan, with declared dependencies and shared compiler flags.
# SPDX-License-Identifier: Apache-2.0

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND PROJECT_IS_TOP_LEVEL)
  # Without this sloppiness ccache keeps nothing that uses precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

# Flags of every target. Nothing is replaced at load time, so that position-independent code inlines
# as other code does. Contraction is off because the numeric contracts state where a fused
# multiply-add happens and where it does not; math functions need not set errno.
add_library(triptych_flags INTERFACE)
target_compile_options(triptych_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>
  # Below this many KiB g++ does not look for memory to give back: a tenth of its time.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>
  $<$<BOOL:${TRIPTYCH_WARNINGS_AS_ERRORS}>:-Werror>)
if(TRIPTYCH_LIBRARY_ASSERTIONS)
  target_compile_definitions(triptych_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
# Defence in depth for a program that reads files of strangers; the cost is in docs/results/hardening.md.
# Sanitizers check more than these flags do, FORTIFY needs an optimising build, and WebAssembly keeps
# return addresses where no program can write.
if(TRIPTYCH_HARDEN AND NOT TRIPTYCH_SANITIZE AND NOT TRIPTYCH_WEB)
  target_compile_options(triptych_flags INTERFACE
    -fstack-protector-strong $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(triptych_flags INTERFACE -fcf-protection=full)
  endif()
  target_link_options(triptych_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
if(TRIPTYCH_SANITIZE)
  target_compile_options(triptych_flags INTERFACE
    -fsanitize=${TRIPTYCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(triptych_flags INTERFACE -fsanitize=${TRIPTYCH_SANITIZE})
endif()
if(TRIPTYCH_SANITIZE MATCHES "undefined")
  # Checks of each access, which take half of g++'s time and find little that AddressSanitizer does not.
  target_compile_options(triptych_flags INTERFACE -fno-sanitize=null,object-size,pointer-overflow,vptr)
endif()

# Folder in which the program looks for its sources when it runs. What is built to be taken elsewhere
# (TRIPTYCH_HIDE_PATHS) looks in the folder that it is started in, and tells nothing of where it was made.
set(TRIPTYCH_SOURCES_AT_HAND ${PROJECT_SOURCE_DIR})
if(TRIPTYCH_HIDE_PATHS)
  set(TRIPTYCH_SOURCES_AT_HAND "")
  target_compile_options(triptych_flags INTERFACE
    -ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
endif()

# Gives the target the headers that the target `headers` has compiled once.
function(triptych_reuse_headers target headers)
  target_precompile_headers(${target} REUSE_FROM ${headers})
  foreach(one IN ITEMS ${target} ${headers})  # so that ccache can tell what they hold
    target_compile_options(${one} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endforeach()
endfunction()

# Headers of the standard library that nearly all sources include, compiled once for all targets with the same
# options: a seventh of the product's compilation. fmt and nlohmann-json do not belong here: each source would
# instantiate their pending templates again, in more time than it takes to read them.
# Without (TRIPTYCH_PRECOMPILED_HEADERS=OFF) each source must include what it uses.
# To be called when the target has its options: functions of precompiled headers keep the level of
# optimisation that these were compiled with.
function(triptych_precompile_headers target)
  if(NOT TRIPTYCH_PRECOMPILED_HEADERS)
    return()
  endif()
  get_property(options TARGET ${target} PROPERTY COMPILE_OPTIONS)
  string(MD5 key "${options};${CMAKE_POSITION_INDEPENDENT_CODE}")
  string(SUBSTRING ${key} 0 8 key)
  set(headers triptych_headers_${key})
  if(NOT TARGET ${headers})
    add_library(${headers} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
    target_link_libraries(${headers} PRIVATE triptych_flags)
    target_compile_options(${headers} PRIVATE ${options})
    target_precompile_headers(${headers} PRIVATE <algorithm> <array> <chrono> <cmath> <filesystem> <functional>
      <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <thread> <unordered_map> <variant> <vector>)
  endif()
  triptych_reuse_headers(${target} ${headers})
endfunction()

# Has the target's sources compiled sixteen at a time, which share what they include and instantiate: two
# thirds of the time of four or five, and still some seconds when one of them changes. Without
# (TRIPTYCH_BATCHES=OFF) each is compiled alone.
function(triptych_batch target)
  if(TRIPTYCH_BATCHES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    # A source that others include has no other file to disagree with.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Keeps sources out of batches, because their names meet those of others in their folder.
function(triptych_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# triptych_embed_files(<output> ROOT <directory> FILES ...): writes <output> in the binary directory, with one line
# {"name", "content"} of C++ per file.
function(triptych_embed_files output)
  cmake_parse_arguments(ARG "" "ROOT" "FILES" ${ARGN})
  list(JOIN ARG_FILES " " names)
  list(TRANSFORM ARG_FILES PREPEND ${ARG_ROOT}/ OUTPUT_VARIABLE paths)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${ARG_ROOT} "-DFILES=${names}" -DENTRIES=${output}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    COMMENT "${output}: files as text" VERBATIM)
endfunction()

# triptych_add_library(<name> [ALONE] [LIGHT] [LOADER] SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...])
# makes the static library triptych_<name> with the alias triptych::<name>; includes are written
# from the root of the repository. ALONE is for kernels. LIGHT is for code that takes no time beside the
# kernels: -O1 saves a third of its compilation. LOADER is for libraries that read files of strangers: the
# standard library checks its indices there in every hardened build.
function(triptych_add_library name)
  cmake_parse_arguments(ARG "ALONE;LIGHT;LOADER" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target triptych_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(triptych::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/triptych>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # A library that is headers alone is not needed to link.
  list(TRANSFORM ARG_PRIVATE_DEPENDS REPLACE "^(nlohmann_json::nlohmann_json|Eigen3::Eigen)$" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(${target}
    PUBLIC ${ARG_DEPENDS}
    PRIVATE $<BUILD_INTERFACE:triptych_flags> ${ARG_PRIVATE_DEPENDS})
  if(ARG_LOADER AND TRIPTYCH_HARDEN AND NOT TRIPTYCH_WEB AND NOT TRIPTYCH_LIBRARY_ASSERTIONS)
    target_compile_options(${target} PRIVATE -D_GLIBCXX_ASSERTIONS)
  endif()
  if(ARG_LIGHT AND NOT TRIPTYCH_WEB)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  triptych_precompile_headers(${target})
  if(NOT ARG_ALONE)
    triptych_batch(${target})
  endif()
endfunction()

# triptych_add_list(<header> TARGETS <target>... INCLUDE <header> NAMESPACE <namespace> FUNCTION <pattern>
#                   NAMES <name>...)
# gives C++ a list that stands in a CMakeLists.txt. What has a name defines the function that the pattern
# gives for it, such as "void add_@name@_ops(OpList& list)", and appends to `list` what it has. The header, in
# the build's folder, from whose root the targets may include it, declares these functions, and defines
# the one of the name `all`, which calls them in the order of the list. INCLUDE declares their parameter.
function(triptych_add_list header)
  cmake_parse_arguments(ARG "" "INCLUDE;NAMESPACE;FUNCTION" "TARGETS;NAMES" ${ARGN})
  set(declarations "")
  set(calls "")
  foreach(name IN LISTS ARG_NAMES)
    string(CONFIGURE "${ARG_FUNCTION}" declared @ONLY)
    string(REGEX REPLACE "^void ([a-z0-9_]+).*$" "\\1" function "${declared}")
    string(APPEND declarations "${declared};\n")
    string(APPEND calls "  ${function}(list);\n")
  endforeach()
  set(name all)
  string(CONFIGURE "${ARG_FUNCTION}" definition @ONLY)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_LIST_FILE BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE origin)
  file(CONFIGURE OUTPUT ${header} @ONLY CONTENT "// Written from the list in @origin@.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include \"@ARG_INCLUDE@\"

namespace @ARG_NAMESPACE@ {

@declarations@
inline @definition@ {
@calls@}

}  // namespace @ARG_NAMESPACE@
")
  foreach(target IN LISTS ARG_TARGETS)
    target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR})
  endforeach()
endfunction()

# triptych_host_plugins(<program>) lets plugins use the functions of the libraries below (core/runtime/plugin.h). The
# program, which links them through others, gets them as a whole.
function(triptych_host_plugins program)
  set(libraries base tensor ops graph autodiff runtime host)
  list(TRANSFORM libraries PREPEND triptych_)
  list(JOIN libraries "," names)
  set_target_properties(${program} PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${names}")
  set(list ${PROJECT_SOURCE_DIR}/cmake/plugin_symbols.txt)
  get_target_property(type ${program} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_options(${program} PRIVATE "LINKER:--dynamic-list=${list}")
  else()
    set(list ${PROJECT_SOURCE_DIR}/cmake/python_symbols.txt)
    target_link_options(${program} PRIVATE "LINKER:--version-script=${list}")
  endif()
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${list})
endfunction()

# Headers that nearly all tests include, likewise: a quarter of a test's compilation.
function(triptych_precompile_test_headers target)
  if(NOT TRIPTYCH_PRECOMPILED_HEADERS)
    return()
  endif()
  if(NOT TARGET triptych_test_headers)
    add_library(triptych_test_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
    target_link_libraries(triptych_test_headers PRIVATE triptych_flags fmt::fmt GTest::gmock)
    target_precompile_headers(triptych_test_headers PRIVATE
      <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <algorithm> <map> <random> <span> <string> <vector>)
  endif()
  triptych_reuse_headers(${target} triptych_test_headers)
endfunction()

# triptych_add_test(<name> LABEL <folder> [threads] [hostile] [SHARDS <count>] SOURCES ... [DEPENDS ...])
# makes one GoogleTest executable and registers it with CTest, labelled by its folder, by `threads` when it
# is worth running under ThreadSanitizer (target triptych_threads_tests), by `hostile` when it reads files,
# bytes or messages (target triptych_hostile_tests). SHARDS makes it that many tests, name_1 and on, which
# share its cases, so that a long one uses all cores; they begin before others.
function(triptych_add_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "LABEL;SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE triptych_flags ${ARG_DEPENDS} fmt::fmt GTest::gmock GTest::gtest_main)
  triptych_precompile_test_headers(${name})
  triptych_build_for_labels(${name} "${ARG_LABEL}")
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    add_test(NAME ${name}_${shard} COMMAND ${name})
    math(EXPR index "${shard} - 1")
    set_tests_properties(${name}_${shard} PROPERTIES LABELS "${ARG_LABEL}" COST 20
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# triptych_more_cases(TEST...): in the long form's part `cases` these tests of this directory repeat code that
# the short form's cases reach, too, in more combinations.
function(triptych_more_cases)
  if(NOT TRIPTYCH_LONG_TESTS)
    return()
  endif()
  foreach(test IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY LABELS cases)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT TRIPTYCH_ALL_CASES=1)
  endforeach()
endfunction()

# Makes a program part of the targets that build the tests of its labels (tests/CMakeLists.txt).
function(triptych_build_for_labels program labels)
  foreach(label IN LISTS labels)
    if(TARGET triptych_${label}_tests)
      add_dependencies(triptych_${label}_tests ${program})
    endif()
  endforeach()
endfunction()

# triptych_add_tests(<program> LABEL <folder> [hostile] [SOURCES ...] [THREADS ...] [DEPENDS ...])
# makes one GoogleTest executable of many sources, which is linked once instead of once each, and
# registers each source with CTest as a test of its own, run alone and named like its file; THREADS are
# those that are labelled `threads`.
function(triptych_add_tests program)
  cmake_parse_arguments(ARG "" "" "LABEL;SOURCES;THREADS;DEPENDS" ${ARGN})
  add_executable(${program} ${PROJECT_SOURCE_DIR}/tests/run_source.cpp ${ARG_SOURCES} ${ARG_THREADS})
  target_link_libraries(${program} PRIVATE triptych_flags ${ARG_DEPENDS} fmt::fmt GTest::gmock)
  triptych_precompile_test_headers(${program})
  triptych_batch(${program})
  foreach(source IN LISTS ARG_SOURCES ARG_THREADS)
    cmake_path(GET source STEM name)
    set(labels ${ARG_LABEL})
    if(source IN_LIST ARG_THREADS)
      list(APPEND labels threads)
    endif()
    add_test(NAME ${name} COMMAND ${program} ${source})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}")
    triptych_build_for_labels(${program} "${labels}")
  endforeach()
endfunction()
