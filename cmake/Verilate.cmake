# Turns SystemVerilog into objects that simulate it. The generated C++ is compiled by clang++ where
# there is one: it turns the functions of floating-point units in RTL into vector code, which makes
# simulation 5 to 8 times faster than g++ does; the objects link with g++'s.
# SPDX-License-Identifier: Apache-2.0

include(${PROJECT_SOURCE_DIR}/systolic/rtl/sources.cmake)
find_program(VERILATOR_PROGRAM verilator)
find_program(VERILATOR_MAKE_PROGRAM NAMES make gmake)
set(TRIPTYCH_CLANG_NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
find_program(VERILATOR_CLANG_PROGRAM NAMES ${TRIPTYCH_CLANG_NAMES})

set(TRIPTYCH_RTL_ARCHITECTURE native CACHE STRING
    "-march of the generated simulators; empty: the compiler's default")

if(VERILATOR_PROGRAM AND NOT VERILATOR_ROOT)
  execute_process(COMMAND ${VERILATOR_PROGRAM} --getenv VERILATOR_ROOT
                  OUTPUT_VARIABLE verilator_root OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(VERILATOR_ROOT ${verilator_root} CACHE PATH "Where Verilator's include folder is")
endif()

# How models are made, here and by `triptych machine build` (systolic/sim/model_flags.h.in).
# --unroll-stmts 1 keeps the array's loops, which the C++ compiler turns into vector code; loops over
# 4 or 8 columns, too, must reach clang's vectoriser as loops.
set(TRIPTYCH_VERILATOR_FLAGS --cc -O3 --x-assign fast --x-initial fast --assert --unroll-stmts 1
    --output-split 0 --trace-fst --no-timing)
set(TRIPTYCH_RTL_FLAGS -O3 -std=c++20)
set(TRIPTYCH_RTL_CLANG_FLAGS -mllvm -unroll-full-max-count=1)
if(TRIPTYCH_RTL_ARCHITECTURE)
  list(APPEND TRIPTYCH_RTL_FLAGS -march=${TRIPTYCH_RTL_ARCHITECTURE} -mprefer-vector-width=512)
endif()
list(JOIN TRIPTYCH_RTL_FLAGS " " rtl_flags)
if(VERILATOR_CLANG_PROGRAM)
  set(TRIPTYCH_RTL_COMPILER ${VERILATOR_CLANG_PROGRAM})
  execute_process(COMMAND ${VERILATOR_CLANG_PROGRAM} ${TRIPTYCH_RTL_FLAGS}
                          ${TRIPTYCH_RTL_CLANG_FLAGS} -fsyntax-only -x c++ /dev/null
                  RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(refused)
    set(TRIPTYCH_RTL_CLANG_FLAGS "")
  endif()
  list(JOIN TRIPTYCH_RTL_CLANG_FLAGS " " clang_flags)
  string(APPEND rtl_flags " ${clang_flags}")
else()
  set(TRIPTYCH_RTL_COMPILER ${CMAKE_CXX_COMPILER})
  message(STATUS "No clang++: the RTL simulators of bf16 machines will run several times slower")
endif()
set(TRIPTYCH_RTL_ALL_FLAGS "${rtl_flags} -fPIC")

set(TRIPTYCH_VERILATED_DIR "" CACHE PATH
    "Where to keep the generated simulators, for several builds to share; empty: in the build folder")

# Verilator's run time, once for all models: triptych_verilated (objects and include directories).
function(triptych_add_verilated_runtime)
  if(TARGET triptych_verilated)
    return()
  endif()
  find_package(ZLIB REQUIRED)
  set(include ${VERILATOR_ROOT}/include)
  add_library(triptych_verilated OBJECT
    ${include}/verilated.cpp ${include}/verilated_fst_c.cpp ${include}/verilated_threads.cpp)
  target_compile_options(triptych_verilated PRIVATE -w
    "SHELL:-include ${PROJECT_SOURCE_DIR}/systolic/sim/verilator_stop.h")
  target_compile_features(triptych_verilated PUBLIC cxx_std_20)
  target_include_directories(triptych_verilated SYSTEM PUBLIC ${include} ${include}/vltstd)
  target_link_libraries(triptych_verilated PRIVATE ZLIB::ZLIB)
endfunction()

# triptych_verilate(<target> <prefix> TOP <module> SOURCES ... [PARAMETERS Rows=4 ...]
#                   [FLAGS --coverage-user ...])
# adds to a target the object of one model, whose class is V<prefix>, and its headers.
function(triptych_verilate target prefix)
  cmake_parse_arguments(ARG "" "TOP" "SOURCES;PARAMETERS;FLAGS" ${ARGN})
  triptych_add_verilated_runtime()
  list(TRANSFORM ARG_PARAMETERS PREPEND -G)
  set(verilator_flags ${TRIPTYCH_VERILATOR_FLAGS} ${ARG_FLAGS})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${prefix})
  if(TRIPTYCH_VERILATED_DIR)  # all that a model is made of is in its folder's name
    string(SHA256 key "${verilator_flags};${TRIPTYCH_RTL_ALL_FLAGS};${TRIPTYCH_RTL_COMPILER};${ARG_TOP};${ARG_PARAMETERS};${ARG_SOURCES}")
    string(SUBSTRING ${key} 0 12 key)
    set(folder ${TRIPTYCH_VERILATED_DIR}/${prefix}-${key})
  endif()
  set(object ${folder}/V${prefix}__ALL.o)
  list(JOIN CMAKE_CXX_COMPILER_LAUNCHER " " launcher)  # a shell takes it apart again
  add_custom_command(
    OUTPUT ${object} ${folder}/V${prefix}.h ${folder}/V${prefix}___024root.h
    COMMAND ${VERILATOR_PROGRAM} ${verilator_flags} --top-module ${ARG_TOP}
            --prefix V${prefix} --Mdir ${folder} -I${MMU_RTL_FOLDER} ${ARG_PARAMETERS} ${ARG_SOURCES}
    COMMAND ${VERILATOR_MAKE_PROGRAM} -s -B -C ${folder} -f V${prefix}.mk V${prefix}__ALL.o
            "CXX=${launcher} ${TRIPTYCH_RTL_COMPILER}"
            "OPT_FAST=${TRIPTYCH_RTL_ALL_FLAGS}"
            "CFG_CXXFLAGS_STD_NEWEST=" VM_PARALLEL_BUILDS=0
    DEPENDS ${ARG_SOURCES} ${MMU_RTL_INCLUDES}
    COMMENT "Verilating ${prefix}"
    VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${target} PRIVATE ${object} ${folder}/V${prefix}.h)
  target_include_directories(${target} SYSTEM PRIVATE ${folder})
endfunction()
