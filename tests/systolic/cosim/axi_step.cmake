# A whole training step behind AXI4 masters takes minutes.
# SPDX-License-Identifier: Apache-2.0
triptych_add_test(mmu_axi_step_test LABEL systolic proofs SOURCES axi_step_test.cpp axi_memory.cpp
                  DEPENDS mmu_cosim triptych_mmu_sim triptych_backends triptych_nn fmt::fmt)
target_include_directories(mmu_axi_step_test SYSTEM PRIVATE
  $<TARGET_PROPERTY:triptych_verilated,INTERFACE_INCLUDE_DIRECTORIES>)
triptych_verilate(mmu_axi_step_test mmu_axi_vector TOP mmu_axi SOURCES ${MMU_AXI_SOURCES}
                  PARAMETERS BufferRows=4096 AccumulatorRows=1024 VectorRows=1024)  # mmu4-vector's
set_tests_properties(mmu_axi_step_test PROPERTIES TIMEOUT 1800)
