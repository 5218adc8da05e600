# Seeded faults of the twin, each of which the co-simulation must find. What numerics.h computes
# the stepper computes, too: faults of it are seeded where it is called.
# SPDX-License-Identifier: Apache-2.0
set(MUTANT_SELECTED seeded_fault)
set(sources activations.cpp array.cpp functional.cpp gather.cpp grid.cpp output.cpp timing.cpp
            vector_unit.cpp weight_tiles.cpp)
set(headers operand_pipe.h requests.h)  # of timing.cpp and weight_tiles.cpp alone
mmu_seed_begin(systolic/twin ${sources} ${headers})

# time
mmu_seed(hazard_a_cycle_early timing.cpp "chain_ + 2" "chain_ + 1")
mmu_seed(in_flight_a_cycle_short timing.cpp "array + 4" "array + 3")
mmu_seed(hazard_of_one_stage timing.cpp "chain_(machine.chain_cycles())"
         "chain_(SEEDED ? machine.rows : machine.chain_cycles())")
mmu_seed(product_has_no_stage timing.cpp "machine_.product_cycles()" "0")
mmu_seed(capture_overtakes_the_swap weight_tiles.cpp
         "(machine.rows - 1) * (machine.pe_latency - 2)" "0U")
mmu_seed(swap_waits_for_all_weights weight_tiles.cpp "machine.pe_latency > 1" "false")
mmu_seed(busy_loader_is_dram weight_tiles.cpp "taken_ > 0" "false")
mmu_seed(seven_in_flight timing.cpp "matmul_count_ % kInFlight" "matmul_count_ % (kInFlight - 1)")
mmu_seed(shadow_free_at_the_swap weight_tiles.cpp "return swap_ + 1 + behind_;"
         "return swap_ + (SEEDED ? 0 : 1) + behind_;")
mmu_seed(per_column_a_cycle_late weight_tiles.cpp "return swap_ + machine_.chain_cycles();"
         "return swap_ + machine_.chain_cycles() + (SEEDED ? 1 : 0);")
mmu_seed(load_token_a_cycle_early timing.cpp "slots_over_ + machine_.rows, fillers"
         "slots_over_ + machine_.rows - (SEEDED ? 1 : 0), fillers")
mmu_seed(store_a_cycle_early timing.cpp "cycle + 1 + machine_.output_cycles()"
         "cycle + machine_.output_cycles()")
mmu_seed(queue_room_at_the_pop requests.h "ring_[tail_].popped + 1" "ring_[tail_].popped")
mmu_seed(fifo_slot_not_skewed weight_tiles.cpp "moved + machine_.rows + machine_.columns"
         "moved + machine_.rows")
mmu_seed(load_before_store timing.cpp
         "constexpr std::array priority = kPriority;"
         "const std::array priority = SEEDED ? std::array{kWeights, kLoad, kStore, kOperand}
                                            : kPriority;")
mmu_seed(no_padding_slots timing.cpp "!matmul.transpose" "true")
mmu_seed(abutting_values_begin_at_lane_0 functional.cpp "matmul.transpose ? next_lane_ : 0" "0")
mmu_seed(step_of_other_lanes grid.cpp "last.lane == lane" "true")
mmu_seed(stall_of_weights_is_dram timing.cpp "stall(Stall::Dram, tile.begins"
         "stall(Stall::Dram, SEEDED ? tile.ready : tile.begins")
mmu_seed(one_request_less_outstanding requests.h
         "count_ < kLimit ? 0 : arrivals_[count_ % kLimit] + 1"
         "count_ < kLimit - 1 ? 0 : arrivals_[(count_ + 1) % kLimit] + 1")
mmu_seed(store_and_load_write_at_once timing.cpp
         "outstanding_[kLoad].first_without(std::max(presented, last_grant_))"
         "std::max(presented, last_grant_)")
mmu_seed(arrivals_are_never_over requests.h "arrivals_[passed_ % kLimit] < cycle"
         "arrivals_[passed_ % kLimit] + 1 < cycle")
mmu_seed(drain_slots_are_shared timing.cpp "stays ? 0 : drained_" "Cycle{0}")
mmu_seed(drains_take_no_time timing.cpp "stays ? machine_.rows : 0" "0U")
mmu_seed(values_of_the_whole_array timing.cpp "stays ? tile.rows : matmul.count" "matmul.count")
mmu_seed(stream_waits_for_an_idle_loader weight_tiles.cpp "busy - std::min<Cycle>(busy, 1)" "busy")
mmu_seed(tile_streams_at_the_start weight_tiles.cpp "start + 1" "start")
mmu_seed(streamed_tile_enters_the_shadow weight_tiles.cpp "tiles_[moved_].stream" "false")
# values
mmu_seed(results_along_the_other_axis functional.cpp "!matmul.transpose" "matmul.transpose")
mmu_seed(runs_cross_a_row gather.cpp "lane != 0" "true")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")  # elsewhere the flag does nothing
  mmu_seed(subnormals_survive array.cpp "0x1F80 | 0x8000 | 0x0040" "0x1F80")
endif()
mmu_seed(relu_hides_nan output.cpp "!(value > 0) && value == value" "!(value > 0)")
mmu_seed(accumulate_ignored_in_remainders functional.cpp "part.first_step > 0" "false")
mmu_seed(kept_in_spite_of_a_load activations.cpp "kept_.clear()" "void()")
mmu_seed(kept_in_spite_of_a_store functional.cpp
         "store.buffer ? activations_.forget() : keep_tiles()"
         "store.buffer ? void() : keep_tiles()")
mmu_seed(stored_group_not_repeated functional.cpp
         "std::size_t{config_.group(log2_group)} * config_.element_bytes()" "row_bytes")
mmu_seed(columns_of_a_grid_overlap grid.cpp
         "matmul.accumulator >= other.accumulator + matmul.count"
         "matmul.accumulator > other.accumulator")
mmu_seed(grid_of_other_positions grid.cpp "a.x == b.x" "true")
mmu_seed(step_of_other_columns grid.cpp
         "columns_[column].accumulator == matmul.accumulator" "true")
mmu_seed(chain_of_other_accumulators grid.cpp
         "columns_[0].accumulator != matmul.accumulator" "false")
mmu_seed(keep_swaps functional.cpp "!matmul.keep" "!tiles_.empty()")
mmu_seed(one_register_written output.cpp "std::size_t{4} * load.columns" "std::size_t{4}")
mmu_seed(narrow_truncates output.cpp "to_bf16(value)"
         "static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)")
mmu_seed(requantizes_down output.cpp "return requantize(value,"
         "if (SEEDED)
    return cut_to_i32(std::int64_t{value} * static_cast<std::int32_t>(multiplier[c]) >>
                      std::clamp(static_cast<std::int32_t>(shift[c]), 1, 62));
  return requantize(value,")
mmu_seed(int8_wraps output.cpp "std::clamp(value, -128, 127)" "value")
mmu_seed(pool_forgets_nan output.cpp "value > values[c]" "!(value <= values[c])")
mmu_seed(operand_a_cycle_early operand_pipe.h "step_after(arrivals_[row])"
         "step_after(arrivals_[row] - 1)")
mmu_seed(stages_wait_for_the_port operand_pipe.h "written_ + (next_write_ != kUnknown ? 1 : 0)"
         "taken_")
mmu_seed(lost_cycles_forgotten operand_pipe.h "arrival + 1 - lost_" "arrival + 1")
mmu_seed(operand_a_row_less_ahead operand_pipe.h "if (asked_ < kDepth)"
         "if (SEEDED && asked_ + 1 >= kDepth) {
      if (asked_ + 1 < taken_ + kDepth)
        next_read_ = std::max(read_granted_, taken_in_[(asked_ + 1) % kDepth]) + 1;
    } else if (asked_ < kDepth)")
mmu_seed(residual_is_wide output.cpp "if (store.narrow) {" "if (store.narrow && !SEEDED) {")
mmu_seed(residual_wraps output.cpp "cut_to_i32(std::int64_t{value} + residual)"
         "static_cast<std::int32_t>(std::int64_t{value} + residual)")
mmu_seed(mask_of_zeros output.cpp "values[c] > 0" "values[c] >= 0")
mmu_seed(pools_in_a_cycle timing.cpp "stream.presented + cycles_per_position_"
         "stream.presented + 1")
# vector unit
mmu_seed(vector_store_a_cycle_early timing.cpp "start_rows(kStore, index, cycle + 2)"
         "start_rows(kStore, index, cycle + (SEEDED ? 1 : 2))")
mmu_seed(vector_constants_are_reads timing.cpp "if (op.constant) from_memory"
         "if (op.constant && !SEEDED) from_memory")
mmu_seed(vector_sums_are_not_counted timing.cpp "if (op.accumulators) report_"
         "if (op.accumulators && !SEEDED) report_")
mmu_seed(vector_subtracts_nothing vector_unit.cpp "b ^ 0x80000000" "b")
mmu_seed(vector_smaller_of_equal_ones vector_unit.cpp "larger(b, a) ? a : b" "larger(a, b) ? b : a")
mmu_seed(vector_compares_subnormals vector_unit.cpp "flush(number(a)) > flush(number(b))"
         "number(a) > number(b)")
mmu_seed(vector_rotates_by_one vector_unit.cpp "(lane + op.scalar) % columns" "(lane + 1) % columns")
mmu_seed(vector_columns_are_not_cleared vector_unit.cpp "std::fill_n(to, columns_, 0);"
         "if (!SEEDED) std::fill_n(to, columns_, 0);")
mmu_seed(vector_constants_are_rows vector_unit.cpp "!op.constant" "true")

set(root ${CMAKE_CURRENT_BINARY_DIR}/mutants)
mmu_seed_end(${root} ${sources} ${headers})
list(TRANSFORM sources PREPEND ${root}/systolic/twin/)
# All that uses what has faults is linked from here, not from the twin's library.
add_executable(mmu_twin_mutants twin_mutants.cpp ${sources}
  ${PROJECT_SOURCE_DIR}/systolic/twin/arrays.cpp ${PROJECT_SOURCE_DIR}/systolic/twin/pe_trace.cpp
  ${PROJECT_SOURCE_DIR}/systolic/twin/twin.cpp)
target_include_directories(mmu_twin_mutants BEFORE PRIVATE ${root})
target_compile_options(mmu_twin_mutants PRIVATE
  -include ${CMAKE_CURRENT_SOURCE_DIR}/seeded_fault.h)
target_link_libraries(mmu_twin_mutants PRIVATE triptych_flags mmu_find_faults)
add_test(NAME mmu_twin_mutants COMMAND mmu_twin_mutants)
set_tests_properties(mmu_twin_mutants PROPERTIES LABELS "systolic;proofs")
add_dependencies(triptych_proofs_tests mmu_twin_mutants)
