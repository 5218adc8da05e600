# Covers of the RTL's other view, a grid of PEs and a memory per bank, on mmu4 with both
# dataflows and a vector unit, which has all of them. Its assertions are on.
# SPDX-License-Identifier: Apache-2.0
include(Verilate)
set(covers "")
set(assertions "")
foreach(source IN LISTS MMU_RTL_SOURCES)
  file(READ ${source} text)
  string(REGEX MATCHALL "[a-z_]+ : cover " found "${text}")
  list(APPEND covers ${found})
  string(REGEX MATCHALL "[a-z_]+ : assert " found "${text}")
  list(APPEND assertions ${found})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()
list(LENGTH covers cover_count)
list(LENGTH assertions assertion_count)
add_executable(mmu_covers covers.cpp ${VERILATOR_ROOT}/include/verilated_cov.cpp)
set_source_files_properties(${VERILATOR_ROOT}/include/verilated_cov.cpp PROPERTIES
  COMPILE_OPTIONS -w)
target_compile_definitions(mmu_covers PRIVATE TRIPTYCH_COVERS=${cover_count}
                                              TRIPTYCH_ASSERTIONS=${assertion_count})
target_include_directories(mmu_covers SYSTEM PRIVATE
  $<TARGET_PROPERTY:triptych_verilated,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(mmu_covers PRIVATE triptych_flags triptych_mmu_sim mmu_cosim fmt::fmt)
triptych_verilate(mmu_covers mmu_covered TOP mmu_top SOURCES ${MMU_RTL_SOURCES}
                  FLAGS --coverage-user
                  PARAMETERS BufferRows=4096 AccumulatorRows=1024 ArrayKind=1 OutputStationary=1
                             VectorRows=64)  # mmu4
add_test(NAME mmu_covers COMMAND mmu_covers)
set_tests_properties(mmu_covers PROPERTIES LABELS "systolic;proofs")
add_dependencies(triptych_proofs_tests mmu_covers)
