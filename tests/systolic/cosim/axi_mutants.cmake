# Seeded faults of the AXI4 ports, each of which random programs behind a memory that stalls must
# find. The memory also finds broken rules of the protocol, and assertions those of the modules.
# SPDX-License-Identifier: Apache-2.0
include(Verilate)
set(MUTANT_SELECTED mutant_pkg::selected)
set(axi_files mmu_axi.sv mmu_axi_read.sv mmu_axi_write.sv)
mmu_seed_begin(systolic/rtl ${axi_files})

# reads
mmu_seed(shared_beats_are_dropped mmu_axi_read.sv "rows_q[read_q+1'b1][11]" "1'b0")
mmu_seed(beats_after_a_gap_are_shared mmu_axi_read.sv "{goes_on && (row_first == last_q),"
         "{goes_on && ((row_first == last_q) || SEEDED),")
mmu_seed(rows_are_a_beat_short mmu_axi_read.sv "7'(row_last - row_first)" "7'd0")
mmu_seed(rows_begin_a_byte_late mmu_axi_read.sv "{offset, 3'd0}" "{offset ^ 4'd1, 3'd0}")
mmu_seed(rows_are_aligned mmu_axi_read.sv "((b + 32'(offset)) >> 4)" "(b >> 4)")
mmu_seed(reads_leave_their_block mmu_axi_read.sv "if (more) end_d" "if (more && !SEEDED) end_d")
mmu_seed(shared_beats_are_sent_early mmu_axi_read.sv "else if (goes_on) end_d"
         "else if (goes_on && !SEEDED) end_d")
mmu_seed(addresses_change mmu_axi_read.sv "(!arvalid_q || arready_i)" "1'b1")
mmu_seed(reads_pass_writes mmu_axi_read.sv "!wait_i" "1'b1")
mmu_seed(rows_overrun_the_ring mmu_axi_read.sv "(count_q != CountBits'(Outstanding))" "1'b1")
mmu_seed(gaps_are_joined mmu_axi_read.sv "(row_first == last_q + 28'd1)"
         "(row_first - last_q <= 28'd2)")
mmu_seed(beats_are_overwritten mmu_axi_read.sv "!beat_q || beat_ends" "1'b1")
# writes
mmu_seed(bytes_before_the_row mmu_axi_write.sv "!(row_begins_q && (b < 32'(offset_q)))" "1'b1")
mmu_seed(bytes_behind_the_row mmu_axi_write.sv "!((at_q == row_last_q) && (b > 32'(end_q)))" "1'b1")
mmu_seed(written_rows_are_aligned mmu_axi_write.sv "8'd128 - {1'b0, offset_q, 3'd0}" "8'd128")
mmu_seed(rows_in_a_beat_forget_the_first mmu_axi_write.sv "(held_strobe_q | strobe)" "strobe")
mmu_seed(writes_leave_their_block mmu_axi_write.sv "(held_at_q[BeatBits-1:0] != '1)" "1'b1")
mmu_seed(bursts_end_a_beat_early mmu_axi_write.sv "beat_q == burst_beats"
         "beat_q + 8'd1 >= burst_beats")
mmu_seed(words_overrun_the_ring mmu_axi_write.sv "(words != WordBits'(Words))" "1'b1")
mmu_seed(bursts_overrun_the_ring mmu_axi_write.sv "(pending != CountBits'(Outstanding))" "1'b1")
mmu_seed(reads_pass_bursts mmu_axi_write.sv "(hit != '0)" "1'b0")
mmu_seed(reads_pass_the_held_beat mmu_axi_write.sv
         "(held_q && (held_at_q[27:BeatBits] == block))" "1'b0")
mmu_seed(bursts_grow mmu_axi_write.sv "close ? '0 : length_q + 8'd1" "length_q + 8'd1")
mmu_seed(bursts_begin_at_their_end mmu_axi_write.sv "(length_q == '0) ? held_at_q : start_q"
         "held_at_q")
mmu_seed(bytes_of_the_last_chunk_stay mmu_axi_write.sv "before_q <= data_q[127:0];"
         "if (!SEEDED) before_q <= data_q[127:0];")
mmu_seed(rows_repeat_a_chunk mmu_axi_write.sv "data_q >> 128" "data_q")
mmu_seed(data_count_as_written mmu_axi_write.sv "closed_q - answered_q" "closed_q - sent_q")
mmu_seed(addresses_are_sent_twice mmu_axi_write.sv "awvalid_o && awready_i"
         "awvalid_o && awready_i && !(SEEDED && wready_i)")
# both
mmu_seed(idle_before_the_writes mmu_axi.sv "(read_busy != '0) || store_busy" "(read_busy != '0)")

set(root ${CMAKE_CURRENT_BINARY_DIR}/axi_mutants)
mmu_seed_end(${root} ${axi_files})
list(TRANSFORM axi_files PREPEND ${root}/systolic/rtl/)

add_executable(mmu_axi_mutants axi_mutants.cpp axi_memory.cpp)
target_include_directories(mmu_axi_mutants PRIVATE ${root})
target_include_directories(mmu_axi_mutants SYSTEM PRIVATE
  $<TARGET_PROPERTY:triptych_verilated,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(mmu_axi_mutants PRIVATE triptych_flags triptych_mmu_sim mmu_find_faults
                                              fmt::fmt)
foreach(model "4x4;VectorRows=64" "3x12;${axi_3x12}")
  list(POP_FRONT model name)
  triptych_verilate(mmu_axi_mutants mmu_axi_mutants_${name} TOP mmu_axi
                    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/mutant_pkg.sv ${MMU_RTL_SOURCES}
                            ${axi_files}
                    PARAMETERS BufferRows=4096 AccumulatorRows=1024 ${model})  # mmu4's memories
endforeach()
add_test(NAME mmu_axi_mutants COMMAND mmu_axi_mutants)
set_tests_properties(mmu_axi_mutants PROPERTIES LABELS "systolic;proofs")
add_dependencies(triptych_proofs_tests mmu_axi_mutants)
