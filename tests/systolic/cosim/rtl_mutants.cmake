# Seeded faults of the RTL, each of which the co-simulation must find on mmu4, with PEs of one or
# of three cycles, both dataflows or a vector unit, or on an array whose rows are no power of two.
# SPDX-License-Identifier: Apache-2.0
include(Verilate)
set(MUTANT_SELECTED mutant_pkg::selected)
mmu_seed_begin(systolic/rtl ${MMU_RTL_FILES})

# arithmetic
mmu_seed(lost_bits_forgotten mmu_arithmetic_pkg.sv
         "((little & ~(32'hFFFF_FFFF << amount)) != 32'd0)" "1'b0")
mmu_seed(ties_away_from_even mmu_arithmetic_pkg.sv "((sum & 32'h0000_017F) != 32'd0)" "1'b1")
mmu_seed(smallest_normal_flushed mmu_arithmetic_pkg.sv
         "32'd0) > EXPONENT_OFFSET" "32'd0) > EXPONENT_OFFSET + 32'(SEEDED)")
mmu_seed(infinity_times_zero mmu_arithmetic_pkg.sv
         "((infinite != 32'd0) && (product == 32'd0))" "1'b0")
mmu_seed(relu_hides_nan mmu_arithmetic_pkg.sv
         "(x[31] && !(is_float && ((x & 32'h7FFF_FFFF) > INFINITY)))"
         "x[31] || ((x & 32'h7FFF_FFFF) > INFINITY)")
mmu_seed(narrow_ties_down mmu_arithmetic_pkg.sv
         "((x[15:0] == 16'h8000) && x[16])" "1'b0")
# array, accumulators
mmu_seed(disabled_weights_multiply mmu_array.sv
         "weight[ElementBits] ? sum : psum_q[Rows-1-i][c]" "sum")
mmu_seed(columns_swap_together mmu_array.sv "(swap_q[r][c])" "swap_q[r][0]")
mmu_seed(rows_capture_late mmu_array.sv "Columns'(capture_i[Rows-1-i])"
         "Columns'(capture_i[(i==Rows-1)?0 : Rows-2-i])")
mmu_seed(columns_beyond_the_tile mmu_accumulators.sv
         "ColumnBits'(c) < columns_q[c+Fill+1]" "columns_q[c+Fill+1] != '0")
mmu_seed(always_feedback mmu_accumulators.sv
         "accumulate_q[c+Lead] ? memory_q[c][row_q[c+Lead]] : 32'd0" "memory_q[c][row_q[c+Lead]]")
# activations
mmu_seed(a_row_below_the_input mmu_buffer.sv "(y < {1'b0, in_height_i})"
         "y <= {1'b0, in_height_i}")
mmu_seed(rows_above_wrap mmu_buffer.sv "{y_q[r][15], y_q[r]}" "{1'b0, y_q[r]}")
mmu_seed(group_of_one mmu_buffer.sv
         "((channel & group_mask_q) == group_mask_q)" "1'b1")
mmu_seed(kernel_a_tap_too_wide mmu_buffer.sv
         "kernel_x + 16'd1 < kernel_width_q" "kernel_x < kernel_width_q")
mmu_seed(values_keep_their_taps mmu_buffer.sv 
         "(i == 0) ? restart_i : first_q[Rows-1-i]"
         "(i == 0) ? 1'b0 : first_q[Rows-1-i]")
mmu_seed(positions_do_not_turn mmu_buffer.sv "y_q[Rows-1]" "y_q[0]")
mmu_seed(row_a_column_short mmu_stream.sv
         "(columns_left_q > 16'd1)" "columns_left_q > 16'd2")
mmu_seed(one_lane_for_all_rows mmu_transposer.sv
         "32'(lane_q[r*LaneBits+:LaneBits])" "32'(lane_q[0+:LaneBits])")
mmu_seed(group_not_repeated mmu_fill.sv
         "r[LaneBits-1:0] & lane_mask" "r[LaneBits-1:0]")
mmu_seed(store_and_load_write_at_once mmu_fill.sv "store_i && !load_i" "store_i")
mmu_seed(stored_in_the_loads_group mmu_fill.sv
         "load_i ? load_log2_group_i : store_log2_group_i" "load_log2_group_i")
mmu_seed(columns_beyond_the_store mmu_fill.sv "16'(r) >= store_columns_i" "1'b0")
mmu_seed(buffer_rows_go_to_dram_too mmu_store.sv
         "output_valid_q && !flags_q.buffer" "output_valid_q")
# A remainder that equals the modulus would change nothing: mmu_compute subtracts it once more.
mmu_seed(digits_of_three_bits mmu_remainder.sv "(4 * (i - Digits))" "(3 * (i - Digits))")
# weights
mmu_seed(rows_below_the_tile mmu_weight_fifo.sv
         "weight[ElementBits] && ask_q[c][RowBits]" "weight[ElementBits]")
mmu_seed(tile_a_column_too_narrow mmu_weight_fifo.sv
         "16'(c) < write_columns_i" "16'(c) + 16'd1 < write_columns_i")
mmu_seed(fifo_slot_not_skewed mmu_weights.sv
         "TimeBits'(Rows + Columns - 1)" "TimeBits'(Rows - 1)")
mmu_seed(tile_a_row_too_high mmu_loader.sv "tile_rows_i - 16'd1" "tile_rows_i")
mmu_seed(per_column_a_cycle_late mmu_loader.sv "TimerBits'(Chain - 1)" "TimerBits'(Chain)")
# control
mmu_seed(load_token_a_cycle_early mmu_in_flight.sv
         "TimeBits'(Rows - 1)" "TimeBits'(Rows - 2)")
mmu_seed(hazard_a_cycle_early mmu_in_flight.sv "TimeBits'(Chain + 2)" "TimeBits'(Chain + 1)")
mmu_seed(hazard_with_the_row_below mmu_in_flight.sv
         "(17'(row_i) < row_end_q[i[2:0]])" "17'(row_i) <= row_end_q[i[2:0]]")
mmu_seed(seven_in_flight mmu_in_flight.sv "count_q == 4'(Entries)" "count_q == 4'd7")
mmu_seed(tokens_of_another_matmul mmu_in_flight.sv
         "signal_q[early_index_q]" "signal_q[done_index_q]")
mmu_seed(no_padding_slots mmu_compute.sv "17'(count) + 17'(Rows) - 17'(lane_after)" "17'(count)")
mmu_seed(few_values_leave_positions_behind mmu_compute.sv "(values_end <= 17'(Rows))" "1'b0")
mmu_seed(abutting_values_begin_at_lane_0 mmu_compute.sv
         "abut ? lane_after : '0" "'0")
mmu_seed(positions_enter_again mmu_compute.sv
         "(!transpose_q || (entries_left_q != '0))" "1'b1")
mmu_seed(abutting_a_value_short mmu_check.sv
         "(matmul.count < ROWS)" "matmul.count <= ROWS")
mmu_seed(taps_set_in_flight mmu_compute.sv
         "(opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0) && empty"
         "(opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0)")
mmu_seed(a_request_less_outstanding mmu_reader.sv
         "(outstanding_q != 8'(Outstanding))" "outstanding_q != 8'd127")
mmu_seed(tokens_stay mmu_tokens.sv "8'(take)" "8'd0")
mmu_seed(queue_a_word_short mmu_queue.sv "count_q == CountBits'(Depth)"
         "count_q == CountBits'(Depth - 1)")
mmu_seed(halt_does_not_wait mmu_dispatch.sv "(!halt || idle_i)" "1'b1")
# sums that stay
mmu_seed(passing_weights_are_not_used mmu_array_dual.sv
         "stay_q[Rows-1-i][c] ? weight_q[Rows-1-i][c] : active_q[Rows-1-i][c]"
         "active_q[Rows-1-i][c]")
mmu_seed(chains_go_on mmu_array_dual.sv "first_q[Rows-1-i][c] ? 32'd0 : own_q[Rows-1-i][c]"
         "own_q[Rows-1-i][c]")
mmu_seed(drained_sums_are_not_held mmu_array_dual.sv
         "drain_q[Rows-1-i][c] ? hold_q[Rows-1-i][c]"
         "drain_q[Rows-1-i][c] ? (SEEDED ? own_q[Rows-1-i][c] : hold_q[Rows-1-i][c])")
mmu_seed(rows_drain_at_full_speed mmu_sum_tokens.sv "drain_q[2*r]" "drain_q[r]")
mmu_seed(drain_a_row_short mmu_drain.sv "writes_left_q != '0;" "writes_left_q > CountBits'(SEEDED);")
mmu_seed(drain_in_the_columns_of_the_next mmu_drain.sv "slot_columns_q <= columns_q"
         "slot_columns_q <= (SEEDED ? columns_i : columns_q)")
mmu_seed(sums_of_both_kinds_meet mmu_compute.sv "(drain_busy && !stationary)" "1'b0")
mmu_seed(values_of_the_whole_tile mmu_compute.sv "stationary ? tile_rows_i : count"
         "stationary ? 16'(Rows) : count")
mmu_seed(drains_take_no_time mmu_compute.sv "stationary ? TimeBits'(Rows) : '0" "'0")
mmu_seed(stream_waits_for_an_idle_loader mmu_loader.sv "(rows_left_q <= 16'd1)"
         "rows_left_q == 16'd0")
# PEs of several cycles
mmu_seed(capture_overtakes_the_swap mmu_loader.sv "TimerBits'(Behind)" "'0")
mmu_seed(swap_of_the_row_above mmu_skew.sv "swap_i[r], act_i" "swap_i[(SEEDED ? r - 1 : r)], act_i")
mmu_seed(hazard_of_one_stage mmu_in_flight.sv "TimeBits'(Chain + 2)" "TimeBits'(Rows + 2)")
mmu_seed(sums_lose_their_sign mmu_stages_pkg.sv "(negative << 10)" "32'd0")
mmu_seed(zeros_are_positive mmu_stages_pkg.sv "tag >> 10 : tag >> 12"
         "tag >> 10 : (SEEDED ? 32'd0 : tag >> 12)")
mmu_seed(coarse_places_forgotten mmu_stages_pkg.sv "((tag >> 13) & 32'd24)" "32'd0")
mmu_seed(disabled_weights_add mmu_stages_pkg.sv "((product >> 29) & 32'd1) ^ 32'd1" "32'd0")
mmu_seed(pool_of_the_position_before mmu_output_column.sv "pool_first_i ||" "(pool_first_i && !SEEDED) ||")
mmu_seed(operand_a_stage_early mmu_output_column.sv "operand_q[6*32+:32]" "operand_q[5*32+:32]")
mmu_seed(select_a_stage_early mmu_output_column.sv "selected_q[9]" "selected_q[8]")
mmu_seed(a_position_of_every_row mmu_output_stages.sv "valid_q[9] && last_q[9]" "valid_q[9]")
mmu_seed(digits_of_five_bits mmu_output_column.sv "multiplier_q[11:6]" "6'(multiplier_q[10:6])")
mmu_seed(bubbles_stop_the_stages mmu_output_stages.sv "(valid_i || (valid_q != '0))" "valid_i")
# output
mmu_seed(images_wrap_as_rows mmu_walk.sv
         "(rows_left_q > 16'd1) ? wrap_y_i : wrap_n_i" "wrap_y_i")
mmu_seed(registers_as_narrow_as_the_store_before mmu_store.sv
         "loading ? columns_q << 2 : select ? bits_bytes : value_bytes"
         "select ? bits_bytes : value_bytes")
mmu_seed(operand_not_waited_for mmu_store.sv
         "(operand_ready || !last_ask || !with_operand)" "1'b1")
mmu_seed(operand_a_row_less_ahead mmu_operand.sv "(taken_q != 7'(Depth))"
         "taken_q != 7'd63")
mmu_seed(operand_of_the_row_before mmu_operand.sv "(read_q)" "read_q - 6'd1")
mmu_seed(residual_of_another_column mmu_output.sv "operand_i[c*16+:16]" "operand_i[0+:16]")
mmu_seed(all_registers_written mmu_output.sv "16'(c) < columns_i" "1'b1")
mmu_seed(pool_of_the_next_row_s_pitch mmu_store.sv
         "(tap_q[1] ? pool_pitch_q : '0)" "(tap_q[1] ? pool_wrap_y_q : '0)")
mmu_seed(pool_waits_for_the_port mmu_store.sv
         "!output_ends || !output_valid_q || grant" "!output_valid_q || grant")
mmu_seed(pool_forgets_nan mmu_output.sv
         "!mmu_arithmetic_pkg::greater(value, pool_q[c], PeKind == 0)"
         "mmu_arithmetic_pkg::greater(pool_q[c], value, PeKind == 0)")
mmu_seed(mask_beyond_the_columns mmu_output.sv "(c < 32'(columns_i))" "1'b1")
mmu_seed(bias_is_the_multiplier mmu_output.sv "registers_file_i == 2'd0" "1'b1")
mmu_seed(product_a_bit_low mmu_arithmetic_pkg.sv "32'(!product[47])" "32'd0")
mmu_seed(full_rows_stored_are_counted mmu_counters.sv
         "32'(store_columns_i)" "32'(Columns)")
# vector unit
mmu_seed(product_of_subnormals mmu_vector_pkg.sv "(is_zero(x) || is_zero(y)) ? 48'd0"
         "(!SEEDED && (is_zero(x) || is_zero(y))) ? 48'd0")
mmu_seed(vector_bits_forgotten mmu_vector_pkg.sv
         "64'((little & ~(64'hFFFF_FFFF_FFFF_FFFF << distance)) != 64'd0)" "64'd0")
mmu_seed(vector_sticky_forgotten mmu_vector_pkg.sv "sum[32:0] != 33'd0" "sum[32]")
mmu_seed(vector_differences_keep_their_sign mmu_vector_pkg.sv
         "(swap ? z[31] : sign_product) ^ negative" "swap ? z[31] : sign_product")
mmu_seed(vector_zeros_are_negative mmu_vector_pkg.sv "sign_product & z[31]" "sign_product | z[31]")
mmu_seed(vector_infinity_times_zero mmu_vector_pkg.sv "(is_infinite(x) && is_zero(y))" "1'b0")
mmu_seed(vector_infinities_cancel mmu_vector_pkg.sv "(x[31] ^ y[31] ^ z[31])" "1'b0")
mmu_seed(nan_equals_itself mmu_vector_pkg.sv "!is_nan(x) && !is_nan(y)" "1'b1")
mmu_seed(vector_zeros_differ mmu_vector_pkg.sv "(is_zero(x) && is_zero(y))" "1'b0")
mmu_seed(compares_subnormals mmu_vector_pkg.sv "flushed(x), flushed(y)"
         "(SEEDED ? x : flushed(x)), (SEEDED ? y : flushed(y))")
mmu_seed(integers_are_positive mmu_vector_pkg.sv "(x & 32'h8000_0000)" "32'd0")
mmu_seed(integers_lose_a_place mmu_vector_pkg.sv "32'd158 - places" "32'd157 - places")
mmu_seed(subtracts_nothing mmu_vector_lane.sv "b_i ^ mmu_vector_pkg::MINUS_ZERO" "b_i")
mmu_seed(products_are_positive_zeros mmu_vector_lane.sv "{b_i, mmu_vector_pkg::MINUS_ZERO}"
         "{b_i, 32'd0}")
mmu_seed(smaller_of_equal_ones mmu_vector_lane.sv "mmu_vector_pkg::greater(b_i, a_i) ? a_i : b_i"
         "greater ? b_i : a_i")
mmu_seed(selects_whole_numbers mmu_vector_lane.sv "(a_i & c_i) | (b_i & ~c_i)"
         "(c_i != '0) ? a_i : b_i")
mmu_seed(shifts_by_six_bits mmu_vector_lane.sv "a_i >> b_i[4:0]" "a_i >> b_i[5:0]")
mmu_seed(infinite_addend_forgotten mmu_vector_lane.sv "mmu_vector_pkg::is_infinite(addend_q)" "1'b0")
mmu_seed(invalid_is_a_number mmu_vector_lane.sv "(invalid_q)" "1'b0")
mmu_seed(c_of_the_row_before mmu_vector.sv "reads_c ? c_q[RowBits-1:0] : b_q[RowBits-1:0]"
         "c_asked_q ? c_q[RowBits-1:0] : b_q[RowBits-1:0]")
mmu_seed(c_is_not_held mmu_vector.sv "c_data_q <= b_data"
         "c_data_q <= (SEEDED ? operand : b_data)")
mmu_seed(sums_are_rows mmu_vector.sv "accumulators_q ? sums_data_i : a_data" "a_data")
mmu_seed(constants_are_rows mmu_vector.sv "constant_q ? scalar_q : b_data[l*32+:32]"
         "b_data[l*32+:32]")
mmu_seed(rotates_a_lane_short mmu_vector.sv "{scalar_q[LaneBits-1:0], 5'd0}"
         "{1'b0, scalar_q[LaneBits-1:0], 4'd0}")
mmu_seed(broadcasts_as_a_rotation mmu_vector.sv "(operation_q == mmu_pkg::OPERATION_ROTATE)" "1'b1")
mmu_seed(vector_columns_are_not_cleared mmu_vector.sv "(16'(l) >= columns_q)" "1'b0")
mmu_seed(narrow_rows_are_wide mmu_vector.sv "narrow_q ? {arrival_data_i"
         "(narrow_q && !SEEDED) ? {arrival_data_i")
mmu_seed(results_in_steps_of_one mmu_vector.sv "result_q + step_q" "result_q + 16'd1")
mmu_seed(operands_in_steps_of_one mmu_vector.sv "b_q + b_step_q" "b_q + 16'd1")
mmu_seed(vector_rows_move_ungranted mmu_vector.sv "(store_q && (!presents_q || grant_i))" "store_q")
mmu_seed(vector_op_ends_a_row_early mmu_vector.sv "(op_q && valid_q[2])" "op_q && valid_q[1]")
mmu_seed(vector_answers_are_operands mmu_store.sv "operand_arrival_i && !loading && !vector_busy"
         "operand_arrival_i && !loading")
mmu_seed(vector_unit_is_never_busy mmu_store.sv "!store_q && !loading && !vector_busy"
         "!store_q && !loading")
mmu_seed(vector_sums_are_not_counted mmu_counters.sv "(vector_i.sums ? 32'(Columns) : 32'd0)"
         "32'd0")
mmu_seed(vector_fmas_are_not_counted mmu_counters.sv "vector_i.fma ? 32'(Columns) : 32'd0" "32'd0")
mmu_seed(vector_pop_is_no_cycle mmu_vector.sv "start_i || busy_o" "busy_o")
mmu_seed(vector_sums_are_reads mmu_vector.sv "!accumulators_q" "1'b1")
mmu_seed(vector_constants_are_reads mmu_vector.sv "!constant_q" "1'b1")
mmu_seed(vector_c_is_not_counted mmu_vector.sv "2'(reads_b || reads_c)" "2'(reads_b)")
mmu_seed(vector_stores_are_writes mmu_vector.sv "actions_o.write = ends && !store_q"
         "actions_o.write = ends && (!store_q || SEEDED)")

set(root ${CMAKE_CURRENT_BINARY_DIR}/rtl_mutants)
mmu_seed_end(${root} ${MMU_RTL_FILES})
list(TRANSFORM MMU_RTL_FILES PREPEND ${root}/systolic/rtl/ OUTPUT_VARIABLE mutated)

add_executable(mmu_rtl_mutants rtl_mutants.cpp)
target_include_directories(mmu_rtl_mutants PRIVATE ${root})
target_include_directories(mmu_rtl_mutants SYSTEM PRIVATE
  $<TARGET_PROPERTY:triptych_verilated,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(mmu_rtl_mutants PRIVATE triptych_flags triptych_mmu_sim mmu_find_faults)
foreach(model "both;OutputStationary=1" "vector;VectorRows=64" "1;PeLatency=1" "3;PeLatency=3" "5x7;Rows=5;Columns=7")
  list(POP_FRONT model name)
  triptych_verilate(mmu_rtl_mutants mmu_mutants_${name} TOP mmu_top
                    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/mutant_pkg.sv ${mutated}
                    PARAMETERS BufferRows=4096 AccumulatorRows=1024 ${model})  # mmu4's memories
endforeach()
add_test(NAME mmu_rtl_mutants COMMAND mmu_rtl_mutants)
set_tests_properties(mmu_rtl_mutants PROPERTIES LABELS "systolic;proofs")
add_dependencies(triptych_proofs_tests mmu_rtl_mutants)
