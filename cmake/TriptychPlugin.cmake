# triptych_add_plugin(<name> <source>...): a shared library that `triptych --plugin` and triptych.load_plugin load.
# It uses the functions of the program that loads it, so it links no library of Triptych.
# SPDX-License-Identifier: Apache-2.0
set(TRIPTYCH_PLUGIN_FOLDER ${CMAKE_CURRENT_LIST_DIR})
function(triptych_add_plugin name)
  add_library(${name} MODULE ${ARGN} ${TRIPTYCH_PLUGIN_FOLDER}/plugin_interface.cpp)
  target_include_directories(${name} PRIVATE
    $<TARGET_PROPERTY:triptych::base,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_features(${name} PRIVATE cxx_std_20)
  # The numeric contracts state where a fused multiply-add happens.
  target_compile_options(${name} PRIVATE -ffp-contract=off)
endfunction()
