# The MMU's SystemVerilog, packages first; with the linter's waivers.
# SPDX-License-Identifier: Apache-2.0
set(MMU_RTL_FILES
  lint.vlt mmu_pkg.sv mmu_arithmetic_pkg.sv mmu_stages_pkg.sv mmu_vector_pkg.sv
  mmu_accumulators.sv mmu_accumulators_banks.sv mmu_array.sv mmu_array_dual.sv
  mmu_array_dual_grid.sv mmu_array_grid.sv mmu_buffer.sv mmu_buffer_banks.sv mmu_check.sv
  mmu_compute.sv mmu_counters.sv mmu_datapath.sv mmu_dispatch.sv mmu_drain.sv mmu_fill.sv
  mmu_in_flight.sv mmu_lane.sv mmu_load.sv mmu_loader.sv mmu_operand.sv mmu_output.sv
  mmu_output_column.sv mmu_output_stages.sv mmu_pe.sv mmu_pe_dual.sv mmu_queue.sv mmu_reader.sv
  mmu_remainder.sv mmu_skew.sv mmu_sram_1r1w.sv mmu_sram_2r1w.sv mmu_store.sv mmu_stream.sv
  mmu_sum_tokens.sv mmu_tokens.sv mmu_top.sv mmu_transposer.sv mmu_vector.sv mmu_vector_lane.sv
  mmu_walk.sv mmu_weight_fifo.sv mmu_weight_fifo_banks.sv mmu_weight_path.sv mmu_weights.sv)
set(MMU_RTL_SOURCES ${MMU_RTL_FILES})
list(TRANSFORM MMU_RTL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
# Included by mmu_top and the modules around it.
set(MMU_RTL_INCLUDED mmu_dram_ports.svh mmu_parameter_values.svh mmu_parameters.svh)
set(MMU_RTL_INCLUDES ${MMU_RTL_INCLUDED})
list(TRANSFORM MMU_RTL_INCLUDES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(MMU_RTL_FOLDER ${CMAKE_CURRENT_LIST_DIR})
# With the machine's ports as AXI4 masters, above mmu_top.
set(MMU_AXI_SOURCES mmu_axi.sv mmu_axi_read.sv mmu_axi_write.sv)
list(TRANSFORM MMU_AXI_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(PREPEND MMU_AXI_SOURCES ${MMU_RTL_SOURCES})
# With several arrays on one DRAM, above mmu_top.
set(MMU_ARRAYS_SOURCES mmu_arbiter.sv mmu_arrays.sv mmu_owners.sv)
list(TRANSFORM MMU_ARRAYS_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(PREPEND MMU_ARRAYS_SOURCES ${MMU_RTL_SOURCES})
